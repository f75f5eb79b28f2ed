"""`timeout-kb collect`: take what running processes tell of a hang, and diagnose it at once."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.common import (
    EXIT_DIAGNOSED,
    State,
    format_option,
    language_option,
    usage,
    write_diagnosis,
)
from app.cli.diagnose import dump_option

if TYPE_CHECKING:
    from app.capture.processes import JobProcesses
    from app.capture.take import HostCapture
    from kb.evidence.stacks import StackGroup
    from kb.types.vocabulary import Language

_NAME = re.compile(r"[\w.:/@+=-]{1,200}")  # goes through a remote shell as it is
REMOTE_PROGRAM = "timeout-kb"


@click.command("collect")
@click.option("--pid", "pids", type=int, multiple=True, help="A process of the job; may repeat.")
@click.option("--job", default="", metavar="NAME", help="Slurm job id, torchrun --rdzv-id, ...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    help="The archive to write, - for standard output. Default: a new file here.",
)
@click.option(
    "--log",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The job's output so far.",
)
@dump_option
@click.option("--native", is_flag=True, help="Frames of C and C++ as well; takes longer.")
@click.option("--hosts", default="", metavar="A,B", help="Collect on these hosts, by --via.")
@click.option(
    "--via",
    default="",
    metavar="COMMAND",
    help='How to run a command there: ssh, srun, "kubectl exec", or a line with {host} in it.',
)
@language_option
@format_option("text", "json", "markdown")
@click.pass_context
def command(
    context: click.Context,
    pids: tuple[int, ...],
    job: str,
    output: Path | None,
    log: Path | None,
    dumps: tuple[Path, ...],
    native: bool,
    hosts: str,
    via: str,
    language: Language | None,
    form: str,
) -> None:
    """Take stacks, states, sockets, dumps and kernel lines of a hanging job into one archive.

    \b
    timeout-kb collect                      the one job of this host
    timeout-kb collect --pid 4711           the job of this launcher or rank
    timeout-kb collect --hosts n1,n2 --via ssh --job 4711

    Takes at most 20 seconds, changes nothing in the job, and removes secrets before it writes.
    The archive is read by `timeout-kb diagnose` and the API. Exit code 0: it is written.
    """  # noqa: D301 - \b is click's mark for text not to be rewrapped
    from app.capture.archive import archive_of, groups_of, new_archive
    from app.capture.budget import Budget
    from app.capture.take import CaptureRequest, take_capture

    state = context.find_object(State) or State()
    if job and not _NAME.fullmatch(job):
        raise usage("usage.job_name", what=job)
    if bool(hosts) != bool(via):
        raise usage("usage.via_needs_hosts")
    if hosts:
        captures = _remote(hosts, via, pids, job, native=native)
    else:
        request = CaptureRequest(
            processes=processes_of(pids, job),
            log=log,
            dumps=dumps,
            native=native,
        )
        captures = [take_capture(request, Budget())]
    archive = archive_of(captures, job)
    if output == Path("-"):
        sys.stdout.buffer.write(archive)
        return
    if output is None:
        output = new_archive(Path(), job or captures[0].host.name, archive)
    else:
        from kb.files.atomic import write_file

        write_file(output, archive, mode=0o600)
    _show(state, captures, groups_of(captures), output, language, form)
    context.exit(EXIT_DIAGNOSED)


def processes_of(pids: Sequence[int], job: str) -> JobProcesses:
    """The processes of the job that is meant, or of the only one on this host.

    Raises:
        click.UsageError: there is none, or there are several.
    """
    from app.capture.processes import below, host_processes, jobs_on_host, of_job, with_ranks

    running = host_processes()
    if pids:
        missing = [str(pid) for pid in pids if pid not in running]
        if missing:
            raise usage("usage.no_process", what=", ".join(missing))
        return with_ranks(below(running, pids))
    if job:
        members = of_job(running, job)
        if not members:
            raise usage("usage.no_process", what=job)
        return with_ranks(members)
    jobs = jobs_on_host(running)
    if not jobs:
        raise usage("usage.no_job")
    if len(jobs) > 1:
        shown = [f"{name or '?'} (--pid {jobs[name][0].pid})" for name in jobs]
        raise usage("usage.several_jobs", jobs=", ".join(shown))
    return with_ranks(next(iter(jobs.values())))


def _remote(
    hosts: str, via: str, pids: Sequence[int], job: str, *, native: bool
) -> list[HostCapture]:
    from app.capture.budget import CAPTURE_S, Budget
    from app.capture.hosts import CONNECT_S, take_from_hosts

    if pids:
        raise usage("usage.pid_is_local")
    names = [name for name in re.split(r"[,\s]+", hosts) if name]
    for name in names:
        if not _NAME.fullmatch(name) or name.startswith("-"):
            raise usage("usage.host_name", what=name)
    words = [REMOTE_PROGRAM, "collect", "--output", "-"]
    words += ["--job", job] if job else []
    words += ["--native"] if native else []
    budget = Budget(CAPTURE_S + CONNECT_S)
    return take_from_hosts(names, via, words, budget)


def _show(
    state: State,
    captures: Sequence[HostCapture],
    groups: Sequence[StackGroup],
    archive: Path,
    language: Language | None,
    form: str,
) -> None:
    from kb.errors import InputError

    with state.service() as service:
        try:
            reading = service.read_paths([archive])
        except InputError:  # no log and no stacks: nothing to diagnose
            answer = None
        else:
            answer = service.answer(reading, language=state.language(language))
        labels = service.knowledge.labels
    if form != "text" and answer is not None:
        write_diagnosis(state, answer, labels, form)
        return
    from app.render.capture import render_capture, taken_line
    from kb.knowledge.labels import Words
    from kb.text.language import answer_language

    words = Words(labels, answer.language if answer else answer_language(language))
    hosts = [capture.host for capture in captures]
    text = render_capture(taken_line(hosts, words), hosts, groups, answer, archive, words)
    click.echo(text, nl=False)
