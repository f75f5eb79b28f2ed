"""`timeout-kb watch`: run a job and diagnose what it printed when it dies or falls silent."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
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
from kb.errors import KBError

if TYPE_CHECKING:
    from kb.types.answer import Diagnosis
    from kb.types.knowledge import Bilingual
    from kb.types.vocabulary import Language

KEY = "TKB_KEY"  # the API key; not a setting of ours, for it belongs to another server
# Said for the person who is not there: the reader takes it for a description of the trouble.
SILENCE_NOTE = "The job hangs: it has printed nothing for {seconds} seconds.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """What to do with the record of a job."""

    dumps: tuple[Path, ...]
    post: str
    form: str
    language: Language | None


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
    help="Diagnose when nothing was printed for so long; the job goes on.",
)
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
) -> None:
    """Run COMMAND; when it dies, say why on standard error.

    \b
    timeout-kb watch -- torchrun --nproc-per-node 8 train.py
    timeout-kb watch --post http://kb:8000 -- srun python train.py

    Its output, its signals and its exit code are the command's own. Dumps of the flight recorder
    are found by --dump or by TORCH_FR_DUMP_TEMP_FILE. --post takes the API key from TKB_KEY.
    """  # noqa: D301 - \b is click's mark for text not to be rewrapped
    state = context.find_object(State) or State()
    request = WatchRequest(dumps=dumps, post=post, form=form, language=state.language(language))
    watcher = _Watcher(state, request, os.environ)
    with contextlib.ExitStack() as stack:
        whole = stack.enter_context(_opened(log)) if log else None
        context.exit(watcher.run(command, whole, hang_after))


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

    def run(
        self, command: tuple[str, ...], whole: BinaryIO | None, hang_after: float | None
    ) -> int:
        """Run the job to its end and give its exit code."""
        record = OutputRecord(whole)
        with stoppable():
            process = WatchedProcess(command, record)
            silence = None
            if hang_after is not None:
                remark = SILENCE_NOTE.format(seconds=f"{hang_after:g}")
                silence = SilenceWatch(
                    process, hang_after, lambda: self._explain(record, "hang.log", remark)
                )
            code = process.wait()
            try:
                if silence:
                    silence.stop()
                for loss in filter(None, (record.log_error, process.output_error)):
                    _report(loss)
                if code:
                    _report(f"{command[0]} ended with exit code {code}")
                    self._explain(record, "job.log")
            except KeyboardInterrupt:
                try:
                    _report("no diagnosis: stopped")
                except KeyboardInterrupt:  # nobody reads our standard error
                    _discard_stderr()
        return code

    def _explain(self, record: OutputRecord, name: str, remark: str = "") -> None:
        """Diagnose the record so far; whatever goes wrong here is not the job's fault."""
        try:
            with scratch() as folder:
                path = Path(folder, name)
                record.save(path)
                if remark:
                    with path.open("a", encoding="utf-8") as file:
                        file.write(remark)
                dumps = new_dumps(self._request.dumps, self._environ, since_s=self._started_s)
                if not (self._request.post and self._posted(path, dumps)):
                    self._diagnose(path, dumps)
        except (KBError, OSError) as error:
            _report(f"no diagnosis: {error}")
        except Exception as error:  # noqa: BLE001 - the job's exit code must survive a bug here
            _report(f"no diagnosis: {self._state.unexpected_error_line(error)}")

    def _posted(self, path: Path, dumps: tuple[Path, ...]) -> bool:
        """Show the server's answer; False where there is none."""
        from app.client import ApiError, Client
        from app.client_http import shown
        from kb.knowledge.load import load_knowledge

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
        settings = self._state.settings
        cache = settings.home / "cache"
        labels = load_knowledge(settings.data, cache=cache, site=settings.site).labels
        self._write(answer.diagnosis, labels)
        server = shown(self._request.post.rstrip("/"))
        _report(f"kept: {answer.page or f'{server}/v1/diagnoses/{answer.id}'}")
        return True

    def _diagnose(self, path: Path, dumps: tuple[Path, ...]) -> None:
        with self._state.service() as service:
            reading = service.read_paths([path], dumps=dumps)
            answer = service.answer(reading, language=self._request.language)
            self._write(answer, service.knowledge.labels)

    def _write(self, diagnosis: Diagnosis, labels: Mapping[str, Bilingual]) -> None:
        write_diagnosis(self._state, diagnosis, labels, self._request.form, err=True)


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
