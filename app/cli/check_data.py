"""`timeout-kb check-data`: whether the files of data/ can be used, before anyone starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.cli.common import EXIT_FAILURE, State, usage

if TYPE_CHECKING:
    from kb.errors import DataError


@click.command("check-data")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.pass_context
def command(context: click.Context, paths: tuple[Path, ...]) -> None:
    """Check knowledge: each problem with its file, line, field and value.

    PATHS are case files (*.md), which are read alone and fast, or one data folder: by default the
    one in use (TIMEOUT_KB_DATA), with the team's own files (TIMEOUT_KB_SITE) beside it. Exit code 1
    where something is wrong.
    """
    state = context.find_object(State) or State()
    data, site = state.settings.data, state.settings.site
    if paths and not any(path.is_dir() for path in paths):
        _check_cases(context, state, paths, data)
        return
    if len(paths) > 1:
        raise usage("usage.one_data_folder")
    data = paths[0] if paths else data
    from kb.knowledge.site import site_files

    errors = dict.fromkeys(str(error) for error in data_errors(data, site))
    for error in errors:
        click.echo(error)
    if errors:
        context.exit(EXIT_FAILURE)
    count = sum(1 for pattern in ("*.yaml", "*.md", "*.json") for _ in data.rglob(pattern))
    click.echo(state.words()("check.right", count=count, folder=str(data)))
    if site is not None:
        count = len(site_files(site))
        click.echo(state.words()("check.right", count=count, folder=str(site)))


def _check_cases(context: click.Context, state: State, paths: Sequence[Path], data: Path) -> None:
    """Check case files alone; what is there in one language only is said and no mistake."""
    from kb.knowledge.cases import load_case
    from kb.knowledge.check import check_case

    errors = [str(error) for path in paths for error in check_case(path, data)]
    for error in errors:
        click.echo(error)
    if errors:
        context.exit(EXIT_FAILURE)
    words = state.words()
    for path in paths:
        language = load_case(path).language
        if language != "both":
            missing = words.term("language", "en" if language == "zh" else "zh")
            click.echo(words("check.one_language", file=path.name, language=missing))
    click.echo(words("check.right_cases", count=len(paths)))


def data_errors(data: Path, site: Path | None = None) -> Iterator[DataError]:
    """Everything that is wrong with a data folder and a site folder, in the order of its parts."""
    from kb.knowledge.check import check_knowledge, failures

    broken = False
    for error in check_knowledge(data):
        broken = True
        yield error
    for read in _readers(data):
        yield from failures(read)
    if not broken:
        for read in _readers_with_knowledge(data):
            yield from failures(read)
        if site is not None:
            yield from _site_errors(data, site)


def _site_errors(data: Path, folder: Path) -> Iterator[DataError]:
    """Everything that is wrong with a site folder beside right data."""
    from kb.bootstrap import wrong_expressions
    from kb.knowledge.check import check_site
    from kb.knowledge.load import read_knowledge
    from kb.knowledge.site import with_site

    knowledge, broken = read_knowledge(data), False
    for error in check_site(knowledge, folder):
        broken = True
        yield error
    if not broken:
        yield from wrong_expressions(with_site(knowledge, folder))


def _readers(data: Path) -> list[Callable[[], object]]:
    """What reads the files that stand for themselves."""
    from ingest.wordlists import load_word_lists
    from kb.diagnose.evidence_model import load_weights
    from kb.evidence.kernel import KernelLine, XidTable
    from kb.evidence.reading import expression
    from kb.evidence.source_code import CodeCalls
    from kb.evidence.stacks import StackPlace
    from kb.knowledge.load import read_yaml
    from kb.text.tokenizer import Tokenizer
    from kb.text.translations import Translations
    from kb.types.knowledge import Bilingual

    return [
        partial(read_yaml, data / "stack_places.yaml", tuple[StackPlace, ...], decode=expression),
        partial(read_yaml, data / "kernel_lines.yaml", tuple[KernelLine, ...], decode=expression),
        partial(read_yaml, data / "xid.yaml", XidTable),
        partial(read_yaml, data / "code_calls.yaml", CodeCalls, decode=expression),
        partial(read_yaml, data / "dump_reasons.yaml", dict[str, Bilingual]),
        partial(read_yaml, data / "hardware.yaml", dict[str, tuple[str, ...]]),
        partial(read_yaml, data / "stages.yaml", dict[str, tuple[str, ...]]),
        partial(read_yaml, data / "line_kinds.yaml", dict[str, Any]),
        partial(load_weights, data / "weights.json"),
        partial(Tokenizer, data / "lexicon"),
        partial(Translations, data / "lexicon"),
        partial(load_word_lists, data),
    ]


def _readers_with_knowledge(data: Path) -> list[Callable[[], object]]:
    """What reads files that name causes, and compiles the expressions."""
    from kb.chat.phrases import load_phrases
    from kb.diagnose.evidence_model import load_weights
    from kb.diagnose.verdict import Engine
    from kb.knowledge.load import read_knowledge
    from kb.logs.scan.scanner import Scanner

    knowledge = read_knowledge(data)
    return [
        partial(load_phrases, data, knowledge),
        partial(Scanner, knowledge.patterns, once_a_block=False),
        lambda: Engine(knowledge, load_weights(data / "weights.json")),
    ]
