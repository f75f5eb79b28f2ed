"""`timeout-kb watch`: run a job and diagnose what it printed when it dies or falls silent."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from app.capture.dumps import new_dumps
from app.cli.common import State, format_option, language_option, note, usage, write_diagnosis
from app.cli.diagnose import dump_option
from app.cli.watched_process import (
    OutputRecord,
    SilenceWatch,
    WatchedProcess,
    scratch,
    stoppable,
)
from app.render.hang import (
    ended_well_line,
    moved_line,
    overdue_line,
    silence_line,
    steps_moved_line,
    stuck_line,
    went_on_line,
)
from kb.diagnose.wording import rank_span
from kb.errors import KBError
from kb.incidents.attempts import add_attempt, job_of, start_of

if TYPE_CHECKING:
    from app.capture.polling import Polling
    from app.capture.ras import StuckRanks
    from app.capture.steps import OverdueSteps, StepReader
    from kb.evidence.capture import CapturedHost, CaptureFile
    from kb.evidence.stacks import StackGroup
    from kb.incidents.attempts import Attempt
    from kb.knowledge.labels import Words
    from kb.knowledge.load import Knowledge
    from kb.settings import Settings
    from kb.types.answer import Diagnosis
    from kb.types.knowledge import Bilingual
    from kb.types.vocabulary import Language

KEY = "TKB_KEY"  # the API key; not a setting of ours, for it belongs to another server
CAPTURE_S = 20.0  # for what a silent job tells
AFTER_END_S = 8.0  # for what its host tells once it has ended: somebody waits for the exit code
# Said for the person who is not there: the reader takes it for a description of the trouble.
SILENCE_NOTE = "The job hangs: it has printed nothing for {seconds} seconds.\n"
RAS_NOTE = (
    "The job hangs: NCCL's RAS has shown no progress of rank {ranks} for {seconds} seconds.\n"
)
STEP_NOTE = "The job hangs: {what}\n"
RAS_AFTER_S = 120.0  # a checkpoint or an evaluation on one rank takes about so long
STEPS_AFTER_S = 120.0  # likewise; and in all of its life the job has to have been faster


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """What to do with the record of a job."""

    dumps: tuple[Path, ...]
    post: str
    form: str
    language: Language | None
    captures: Path | None = None
    job: str = ""
    hang_after_s: float | None = None
    ras_after_s: float = 0.0
    steps_after_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCapture:
    """An archive that was written, and who stood where."""

    path: Path
    hosts: tuple[CapturedHost, ...]
    groups: tuple[StackGroup, ...]


@click.command("watch", context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@dump_option
@click.option("--post", default="", metavar="URL", help="Let this server diagnose, and keep it.")
@format_option("text", "json", "markdown")
@language_option
@click.option(
    "--log", type=click.Path(path_type=Path, dir_okay=False), help="Write all output here as well."
)
@click.option(
    "--hang-after",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Capture and diagnose when nothing was printed for so long; the job goes on.",
)
@click.option(
    "--ras-after",
    type=click.FloatRange(min=0),
    default=RAS_AFTER_S,
    show_default=True,
    metavar="SECONDS",
    help="Likewise when NCCL's RAS service shows a rank without progress for so long; 0: never.",
)
@click.option(
    "--steps-after",
    type=click.FloatRange(min=0),
    default=STEPS_AFTER_S,
    show_default=True,
    metavar="SECONDS",
    help="Likewise when a rank that printed steps prints none for so long, and for twice its "
    "longest pause; 0: never.",
)
@click.option(
    "--captures",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where archives of what was captured go. Default: captures in the state folder.",
)
@click.option("--job", default="", metavar="NAME", help="Whose attempt this is, for retries.")
@click.pass_context
def command(
    context: click.Context,
    command: tuple[str, ...],
    dumps: tuple[Path, ...],
    post: str,
    form: str,
    language: Language | None,
    log: Path | None,
    hang_after: float | None,
    ras_after: float,
    steps_after: float,
    captures: Path | None,
    job: str,
) -> None:
    """Run COMMAND; when it dies or falls silent, say why on standard error.

    \b
    timeout-kb watch -- torchrun --nproc-per-node 8 train.py
    timeout-kb watch --post http://kb:8000 -- srun python train.py

    Its output, its signals and its exit code are the command's own. Dumps of the flight recorder
    are found by --dump or by TORCH_FR_DUMP_TEMP_FILE. --post takes the API key from TKB_KEY.
    Of a silent job stacks are taken as well (timeout-kb collect), and it is said who stands where;
    likewise where NCCL's RAS service shows the same rank behind in report after report, and where
    the steps that ranks print stop. A job that goes on after that was slow: it is taken back.
    Attempts of one job (--job, SLURM_JOB_ID, ...) are compared: diagnose --retry-verdict.
    """  # noqa: D301 - \b is click's mark for text not to be rewrapped
    state = context.find_object(State) or State()
    request = WatchRequest(
        dumps=dumps,
        post=post,
        form=form,
        language=state.language(language),
        captures=captures,
        job=job or job_of(os.environ),
        hang_after_s=hang_after,
        ras_after_s=ras_after,
        steps_after_s=steps_after,
    )
    watcher = _Watcher(state, request, os.environ)
    with contextlib.ExitStack() as stack:
        whole = stack.enter_context(_opened(log)) if log else None
        context.exit(watcher.run(command, whole))


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("wb", buffering=0)  # read while it grows; nothing left to fail at the end
    except OSError as error:
        raise usage("usage.no_record", path=path, why=error.strerror) from error


class _Watcher:
    """One watched job; `environ` is what it is given, and where its dumps and the key stand."""

    def __init__(self, state: State, request: WatchRequest, environ: Mapping[str, str]) -> None:
        self._state = state
        self._request = request
        self._environ = environ
        self._started_s = time.time()
        self._silent_at = 0  # bytes printed before the last silence
        self._hang_stands = False  # a hang was told and not taken back
        self._stop = threading.Event()  # ends a capture
        self._capturing = threading.Lock()  # one capture at a time
        self._last_stacks: tuple[tuple[CaptureFile, bytes], ...] = ()  # of the last silence

    def run(self, command: tuple[str, ...], whole: BinaryIO | None) -> int:
        """Run the job to its end and give its exit code."""
        record = OutputRecord(whole)
        with stoppable():
            process = WatchedProcess(command, record)
            watches = self._watches(process, record)
            code = process.wait()
            try:
                self._stop.set()  # a capture of a job that is no more tells nothing
                for watch in watches:
                    watch.stop()
                self._stop.clear()
                for loss in filter(None, (record.log_error, process.output_error)):
                    _report(loss)
                if code:
                    _report(f"{command[0]} ended with exit code {code}")
                    self._explain_end(record, code)
                else:
                    self._guarded(lambda: self._explain_good_end(record))
            except KeyboardInterrupt:
                self._stop.set()
                try:
                    _report("no diagnosis: stopped")
                except KeyboardInterrupt:  # nobody reads our standard error
                    _discard_stderr()
        return code

    def _watches(
        self, process: WatchedProcess, record: OutputRecord
    ) -> list[SilenceWatch | Polling]:
        """What looks at the job while it runs."""
        request = self._request
        watches: list[SilenceWatch | Polling] = []
        after_s = request.hang_after_s
        if after_s is not None:
            remark = SILENCE_NOTE.format(seconds=f"{after_s:g}")
            head = partial(silence_line, after_s)
            watches.append(
                SilenceWatch(
                    process,
                    after_s,
                    lambda: self._explain_hang(process, record, head, remark),
                    lambda silent_s: self._take_back(
                        record, self._silent_at, partial(went_on_line, silent_s)
                    ),
                )
            )
        if request.ras_after_s:
            from app.capture.processes import host_processes, watched_job
            from app.capture.ras import RasWatch

            watches.append(
                RasWatch(
                    lambda: watched_job(host_processes(), process.pid, request.job).ranks,
                    request.ras_after_s,
                    lambda stuck: self._explain_stuck(process, record, stuck),
                    lambda moved: self._take_back_with(partial(moved_line, moved)),
                )
            )
        if request.steps_after_s:
            from app.capture.steps import StepWatch

            record.keep_recent()
            watches.append(
                StepWatch(
                    record.recent,
                    self._step_reader,
                    request.steps_after_s,
                    lambda overdue: self._explain_overdue(process, record, overdue),
                    lambda seconds: self._take_back_with(partial(steps_moved_line, seconds)),
                )
            )
        return watches

    def _step_reader(self) -> StepReader:
        from app.capture.steps import StepReader
        from kb.logs.event_log import EventVocabulary

        return StepReader(EventVocabulary.of(_knowledge(self._state.settings)))

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do it; whatever goes wrong here is not the job's fault."""
        try:
            work()
        except (KBError, OSError) as error:
            _report(f"no diagnosis: {error}")
        except Exception as error:  # noqa: BLE001 - the job's exit code must survive a bug here
            _report(f"no diagnosis: {self._state.unexpected_error_line(error)}")

    def _explain_stuck(
        self, process: WatchedProcess, record: OutputRecord, stuck: StuckRanks
    ) -> None:
        remark = RAS_NOTE.format(ranks=rank_span(stuck.ranks), seconds=f"{stuck.seconds:.0f}")
        self._explain_hang(process, record, partial(stuck_line, stuck), remark)

    def _explain_overdue(
        self, process: WatchedProcess, record: OutputRecord, overdue: OverdueSteps
    ) -> None:
        def explain() -> None:
            line = partial(overdue_line, overdue)
            if self._hang_stands and record.size == self._silent_at:
                _report(line(self._state.words(self._request.language)))  # stacks were just taken
                return
            remark = STEP_NOTE.format(what=line(self._state.words("en")))
            self._explain_hang(process, record, line, remark)

        self._guarded(explain)

    def _take_back_with(self, line: Callable[[Words], str]) -> None:
        def tell() -> None:
            self._hang_stands = False
            self._last_stacks = ()
            _report(line(self._state.words(self._request.language)))

        self._guarded(tell)

    def _explain_hang(
        self,
        process: WatchedProcess,
        record: OutputRecord,
        head: Callable[[Words], str],
        remark: str,
    ) -> None:
        """Say who stands where, and why if that is seen; the job goes on."""

        def explain() -> None:
            self._silent_at = record.size
            with scratch() as folder:
                path = Path(folder, "hang.log")
                record.save(path)
                with path.open("a", encoding="utf-8") as file:
                    file.write(remark)
                capture = self._captured(path, pid=process.pid, limit_s=CAPTURE_S)
                if self._stop.is_set():
                    return  # it ended meanwhile and is explained in a moment
                self._hang_stands = True
                if not (self._request.post and self._posted(capture.path, ())):
                    self._tell_hang(capture)

        if self._request.form == "text":  # at once: the rest takes seconds
            self._guarded(lambda: _report(head(self._state.words(self._request.language))))
        with self._capturing:
            self._guarded(explain)

    def _tell_hang(self, capture: WrittenCapture) -> None:
        from app.render.capture import render_capture, taken_line
        from kb.knowledge.labels import Words

        with self._state.service() as service:
            reading = service.read_paths([capture.path])
            answer = service.answer(reading, language=self._request.language)
            labels = service.knowledge.labels
        if self._request.form != "text":
            self._write(answer, labels)
            return
        words = Words(labels, answer.language)
        first = taken_line(capture.hosts, words)
        text = render_capture(first, capture.hosts, capture.groups, answer, capture.path, words)
        _report(text.rstrip("\n"))

    def _take_back(self, record: OutputRecord, since: int, line: Callable[[Words], str]) -> None:
        """A job that went on did not hang, unless what it printed tells of a failure."""

        def tell() -> None:
            text = record.since(since).decode("utf-8", "replace")
            with self._state.service() as service:
                reading = service.read_text(text) if text.strip() else None
            failed = reading and (reading.incident.has_timeout or reading.incident.first_error)
            if not failed:
                self._take_back_with(line)

        self._guarded(tell)

    def _explain_end(self, record: OutputRecord, code: int) -> None:
        """Diagnose the record, with what this host still tells."""

        def explain() -> None:
            with scratch() as folder:
                path = Path(folder, "job.log")
                record.save(path)
                dumps = new_dumps(self._request.dumps, self._environ, since_s=self._started_s)
                if self._request.post and self._posted(path, dumps):
                    return
                capture = self._captured(path, pid=None, limit_s=AFTER_END_S)
                self._diagnose(capture, code)

        self._guarded(explain)

    def _captured(self, log: Path, *, pid: int | None, limit_s: float) -> WrittenCapture:
        """Write an archive of the job below `pid` and its output.

        Raises:
            OSError: it cannot be written.
        """
        from app.capture.archive import archive_of, groups_of, new_archive, prune
        from app.capture.budget import Budget
        from app.capture.processes import JobProcesses, host_processes, watched_job
        from app.capture.take import CaptureRequest, take_capture
        from kb.files.state_folder import make_state_folder

        processes = JobProcesses(ranks=())
        if pid is not None:
            processes = watched_job(host_processes(), pid, self._request.job)
        request = CaptureRequest(
            processes=processes,
            log=log,
            dumps=self._request.dumps,
            environ=self._environ,
            since_s=self._started_s,
        )
        capture = take_capture(request, Budget(limit_s, self._stop))
        if pid is None:  # of what is no more the last silence tells
            capture = replace(capture, files=(*capture.files, *self._last_stacks))
        self._last_stacks = tuple(item for item in capture.files if "/stacks/" in item[0].name)
        folder = self._request.captures or self._state.settings.home / "captures"
        make_state_folder(folder)
        job = self._request.job or capture.host.name
        path = new_archive(folder, job, archive_of([capture], self._request.job))
        prune(folder)
        return WrittenCapture(path=path, hosts=(capture.host,), groups=groups_of([capture]))

    def _posted(self, path: Path, dumps: tuple[Path, ...]) -> bool:
        """Show the server's answer; False where there is none."""
        from app.client import ApiError, Client
        from app.client_http import shown

        language = self._request.language
        try:
            with Client(self._request.post, self._environ.get(KEY) or None) as client:
                try:
                    answer = client.keep(path, dumps=dumps, language=language)
                except ApiError as error:
                    if error.code != "too-large":
                        raise
                    _report("log and dumps are too large together: the log goes alone")
                    answer = client.keep(path, language=language)
        except KBError as error:
            _report(f"diagnosed here, for {shown(self._request.post)} did not: {error}")
            return False
        self._write(answer.diagnosis, _knowledge(self._state.settings).labels)
        server = shown(self._request.post.rstrip("/"))
        _report(f"kept: {answer.page or f'{server}/v1/diagnoses/{answer.id}'}")
        return True

    def _diagnose(self, capture: WrittenCapture, code: int) -> None:
        from kb.knowledge.labels import Words

        with self._state.service() as service:
            reading = service.read_paths([capture.path])
            answer = service.answer(reading, language=self._request.language)
            labels = service.knowledge.labels
        self._write(answer, labels)
        words = Words(labels, answer.language)
        if self._request.form == "text":
            _report(words("capture.archive", path=str(capture.path)))
        if self._request.job:
            from app.inputs.attempts import attempt_of

            start = start_of(self._environ)
            self._keep(attempt_of(reading, answer, exit_code=code, start=start), words)

    def _explain_good_end(self, record: OutputRecord) -> None:
        if self._hang_stands:
            self._take_back(record, 0, ended_well_line)
        if self._request.job:
            from app.inputs.attempts import attempt_that_ended_well

            self._keep(attempt_that_ended_well(start_of(self._environ)), None)

    def _keep(self, attempt: Attempt, words: Words | None) -> None:
        """Keep an attempt of the job, and say what they tell together."""
        from app.render.attempts import attempt_lines

        job = self._request.job
        attempts = add_attempt(self._state.settings.home, job, attempt)
        if words is not None:
            for line in attempt_lines(job, attempts, words):
                _report(line)

    def _write(self, diagnosis: Diagnosis, labels: Mapping[str, Bilingual]) -> None:
        write_diagnosis(self._state, diagnosis, labels, self._request.form, err=True)


def _knowledge(settings: Settings) -> Knowledge:
    from kb.knowledge.load import load_knowledge

    return load_knowledge(settings.data, cache=settings.home / "cache", site=settings.site)


def _report(message: str) -> None:
    """Tell the person; a standard error that is full or gone is not the job's fault."""
    try:
        note(f"timeout-kb watch: {message}")
    except OSError:
        _discard_stderr()


def _discard_stderr() -> None:
    """What waits to be written must go somewhere, or the interpreter ends with its own code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stderr.fileno())
    os.close(nowhere)
