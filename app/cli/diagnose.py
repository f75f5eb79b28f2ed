"""`timeout-kb diagnose`: log in, answer out; and `timeout-kb ranks`, its table of ranks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.common import (
    EXIT_DIAGNOSED,
    EXIT_UNDECIDED,
    State,
    check_sources,
    format_option,
    language_option,
    note,
    stdin_chunks,
    stdin_stream,
    text_width,
    torch_option,
    usage,
    write_change,
    write_diagnosis,
    write_json,
)
from kb.incidents.attempts import job_of
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.posting import PostTarget
    from kb.incidents.attempts import Attempt
    from kb.knowledge.labels import Words
    from kb.service import Service
    from kb.types.answer import Diagnosis
    from kb.types.incident import LogReading
    from kb.types.knowledge import Bilingual

EXIT_HOPELESS = 4  # another attempt will end the same way
STDIN = (Path("-"),)
FILES = click.Path(path_type=Path, allow_dash=True)
dump_option = click.option(
    "--dump",
    "dumps",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Flight-recorder dumps: a folder or a file; may be given more than once.",
)


@click.command("diagnose")
@click.argument("files", nargs=-1, type=FILES, metavar="[FILE|-]...")
@dump_option
@language_option
@format_option("text", "json", "markdown", "short")
@click.option("--top", type=click.IntRange(1, 19), help="How many causes to show.")
@torch_option
@click.option("--full", is_flag=True, help="Show all evidence, fixes, checks, timeline and ranks.")
@click.option(
    "--baseline",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="LOG",
    help="A good run's log, or other ranks': show what this run alone printed.",
)
@click.option(
    "--send-to",
    default="",
    metavar="URL",
    help="Post it: an issue of GitHub or GitLab (or .../issues: a new one), or a webhook.",
)
@click.option(
    "--template",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON for the webhook, with {title}, {text}, {markdown}, {status}, {cause} in it.",
)
@click.option("--job", default="", metavar="NAME", help="Keep it as an attempt of this job.")
@click.option(
    "--retry-verdict",
    "only_retry",
    is_flag=True,
    help="Say only whether a retry may help; exit code 4: it will not.",
)
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    dumps: tuple[Path, ...],
    language: Language | None,
    form: str,
    top: int | None,
    torch: str | None,
    full: bool,
    baseline: tuple[Path, ...],
    send_to: str,
    template: Path | None,
    job: str,
    only_retry: bool,
) -> None:
    """Say what happened in a timeout log, why, and what to do.

    Reads FILEs (also .gz and .zst), what `timeout-kb collect` wrote, or standard input. Exit code
    0: diagnosed; 3: the cause stays unknown, or there is no timeout. With --retry-verdict, 0:
    nothing speaks against a retry; 4: one will not help. Without FILE that is told by the attempts
    known so far.

    --send-to takes its token from GITHUB_TOKEN, GITLAB_TOKEN or TKB_WEBHOOK_TOKEN.
    """
    from kb.knowledge.labels import Words

    state = context.find_object(State) or State()
    job = job or (job_of(os.environ) if only_retry else "")
    if only_retry:
        if not job:
            raise usage("usage.verdict_needs_job")
        context.exit(_retry(state, files, dumps, job, language))
    if baseline and form not in ("text", "markdown"):
        raise usage("usage.baseline_form")
    files = check_sources(files, dumps=dumps)
    target = _target(send_to, template)
    with state.service() as service:
        language = state.language(language)
        reading = _read(service, files, dumps)
        verdict = service.judge(reading, torch=torch)
        if service.second_reader is not None and form != "text":
            verdict = service.second_reader.read(verdict)
        diagnosis = service.render(verdict, language=language, top=top)
        labels = service.knowledge.labels
        write_diagnosis(state, diagnosis, labels, form, full=full)
        words = Words(labels, diagnosis.language)
        if baseline:
            _write_baseline(files, baseline, words)
        if job:
            from app.render.attempts import attempt_lines

            attempts = _keep_attempt(state, job, reading, diagnosis)
            for line in attempt_lines(job, attempts, words):
                note(line)
        if service.second_reader is not None and form == "text":
            click.echo("", err=True)
            note(f"asking the language model at {service.second_reader.address} ...")
            better = service.render(service.second_reader.read(verdict), language=language, top=top)
            write_change(state, diagnosis, better, labels)
            diagnosis = better
    if target is not None:
        _send(target, diagnosis, labels)
    context.exit(EXIT_DIAGNOSED if diagnosis.status == "diagnosed" else EXIT_UNDECIDED)


def _write_baseline(files: tuple[Path, ...], baseline: tuple[Path, ...], words: Words) -> None:
    from app.render.baseline import baseline_lines
    from kb.logs.baseline import compare

    compared = compare([path for path in files if path != Path("-")], baseline)
    click.echo("\n" + "\n".join(baseline_lines(compared, words, width=text_width())))


def _target(send_to: str, template: Path | None) -> PostTarget | None:
    """Where the answer is posted, checked before anything slow happens."""
    if template is not None and not send_to:
        raise usage("usage.template_needs_address")
    if not send_to:
        return None
    from app.posting import target_of

    return target_of(send_to, os.environ, template)


def _send(target: PostTarget, diagnosis: Diagnosis, labels: Mapping[str, Bilingual]) -> None:
    from app.client_http import shown
    from app.posting import Post, send
    from kb.knowledge.labels import Words

    link = send(target, Post.of(diagnosis, labels)) or target.address
    note(Words(labels, diagnosis.language)("post.sent", link=shown(link)))


def _retry(
    state: State,
    files: tuple[Path, ...],
    dumps: tuple[Path, ...],
    job: str,
    language: Language | None,
) -> int:
    """Print whether a retry may help, and the exit code that says so."""
    from app.render.attempts import attempt_lines
    from kb.incidents.attempts import read_attempts, retry_verdict

    if files or dumps:
        with state.service() as service:
            reading = _read(service, files, dumps)
            attempts = _keep_attempt(state, job, reading, service.answer(reading))
    else:
        attempts = read_attempts(state.settings.home, job)
    state.requested_language = language
    for line in attempt_lines(job, attempts, state.words()):
        click.echo(line)
    return EXIT_HOPELESS if retry_verdict(attempts).hopeless else EXIT_DIAGNOSED


def _keep_attempt(
    state: State, job: str, reading: LogReading, answer: Diagnosis
) -> tuple[Attempt, ...]:
    from app.inputs.attempts import attempt_of
    from kb.incidents.attempts import add_attempt, start_of

    attempt = attempt_of(reading, answer, exit_code=None, start=start_of(os.environ))
    return add_attempt(state.settings.home, job, attempt)


def _read(service: Service, files: tuple[Path, ...], dumps: tuple[Path, ...]) -> LogReading:
    if files != STDIN:
        return service.read_paths(files, dumps=dumps)
    if not dumps:
        return service.read_stream(stdin_chunks())
    from app.inputs.uploads import upload_folder

    with upload_folder() as folder:
        path = folder.add("stdin.log", stdin_stream())
        return service.read_paths([path], dumps=dumps)


@click.command("ranks")
@click.argument("files", nargs=-1, type=FILES, metavar="[FILE|-]...")
@dump_option
@language_option
@format_option("text", "json")
@click.pass_context
def ranks_command(
    context: click.Context,
    files: tuple[Path, ...],
    dumps: tuple[Path, ...],
    language: Language | None,
    form: str,
) -> None:
    """Show how far each rank came: last enqueued, last completed, step, exit.

    Exit code 3 where the input tells nothing about single ranks.
    """
    state = context.find_object(State) or State()
    files = check_sources(files, dumps=dumps)
    with state.service() as service:
        reading = _read(service, files, dumps)
        diagnosis = service.answer(reading, language=state.language(language))
        if form == "json":
            write_json(diagnosis.incident.ranks)
        else:
            write_diagnosis(state, diagnosis, service.knowledge.labels, "ranks")
    context.exit(EXIT_DIAGNOSED if diagnosis.incident.ranks else EXIT_UNDECIDED)
