"""Everything that is wrong with the knowledge of a data folder, not only the first of it."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from kb.errors import DataError
from kb.knowledge.cases import load_case, places_to_do
from kb.knowledge.front_matter import read_markdown
from kb.knowledge.load import (
    FILES,
    Knowledge,
    read_knowledge,
    read_labels,
    read_yaml,
    wrong_references,
)
from kb.knowledge.notes import load_note
from kb.knowledge.schema import nearest
from kb.knowledge.site import site_of, site_readers, wrong_in_site
from kb.types.entries import Entry
from kb.types.vocabulary import Language

CAUSES = "causes.yaml"
TITLE_CHARS: Mapping[Language, int] = {"zh": 60, "en": 110}  # at most, of a case
LIKENESS = 0.85  # of a name used once to another from which it is taken for a slip of that


def check_knowledge(data: Path) -> Iterator[DataError]:
    """What is wrong with the files of the knowledge, a file at a time.

    References from file to file are checked once every file is right by itself.
    """
    wrong = False
    readers: list[Callable[[], object]] = [
        *(partial(read_yaml, data / name, kind) for name, kind in FILES.items()),
        partial(read_labels, data / "labels"),
        *(partial(load_case, path) for path in sorted((data / "cases").glob("*.md"))),
        *(partial(load_note, path) for path in sorted((data / "notes").glob("*.md"))),
    ]
    for read in readers:
        for error in failures(read):
            wrong = True
            yield error
    if not wrong:
        knowledge = read_knowledge(data, check=False)
        yield from wrong_references(knowledge)
        yield from _misspelt_frameworks(knowledge)
        yield from _long_titles(knowledge.cases)
        yield from _upgrades_without_end(knowledge.cases)


def check_case(path: Path, data: Path) -> Iterator[DataError]:
    """What is wrong with one case file; of the other files only the causes are read."""
    try:
        unfinished = list(places_to_do(read_markdown(path), path.name))
        yield from unfinished
        if unfinished:
            return
        case = load_case(path)
    except DataError as error:
        yield error
        return
    known = [cause.id for cause in read_yaml(data / CAUSES, FILES[CAUSES])]
    for claim in case.causes:
        if claim.id not in known:
            what = f"{path.name}: cause: {claim.id!r} is no cause"
            yield DataError(what, todo=nearest(claim.id, known))
    for source in case.sources:
        if not source.url.startswith("https://"):
            what = f"{path.name}: sources: {source.url!r} is no address"
            yield DataError(what, todo="begin it with https://")
    yield from _long_titles([case])
    yield from _upgrades_without_end([case])


def check_site(knowledge: Knowledge, folder: Path) -> Iterator[DataError]:
    """What is wrong with the files of a site folder beside the shipped `knowledge`."""
    try:
        readers = site_readers(folder)
    except DataError as error:
        yield error
        return
    values: dict[Path, object] = {}
    for path, read in readers.items():
        try:
            values[path] = read()
        except DataError as error:
            yield error
    if len(values) == len(readers):
        yield from wrong_in_site(knowledge, site_of(values), folder)


def failures(read: Callable[[], object]) -> Iterator[DataError]:
    """What a reader refuses: at most one."""
    try:
        read()
    except DataError as error:
        yield error


def _long_titles(cases: Iterable[Entry]) -> Iterator[DataError]:
    """Titles of cases that are too long for a line of a list."""
    for case in cases:
        for language, most in TITLE_CHARS.items():
            if case.language not in (language, "both"):
                continue
            title = case.title.get(language)
            if len(title) > most:
                what = f"{case.id}.md: the title in {language} has {len(title)} characters"
                yield DataError(what, todo=f"say it in {most}")


def _upgrades_without_end(cases: Iterable[Entry]) -> Iterator[DataError]:
    """Upgrades kept from all older releases: those who need one run a release before it."""
    for case in cases:
        for fix in case.fixes:
            if not fix.title.get("en").startswith("Upgrade"):
                continue
            for versions in fix.applies_to.versions:
                if ">" in versions and "<" not in versions:
                    what = f"{case.id}.md: versions: {versions!r} hides an upgrade from older ones"
                    yield DataError(what, todo="name those that need it, as in torch<2.6")


def _misspelt_frameworks(knowledge: Knowledge) -> Iterator[DataError]:
    """Frameworks named once that look like one named elsewhere; new ones are welcome."""
    used = [(f"{case.id}.md", name) for case in knowledge.cases for name in case.tags.frameworks]
    used += [(f"{note.id}.md", name) for note in knowledge.notes for name in note.frameworks]
    for where, fixes in (
        *((f"{case.id}.md", case.fixes) for case in knowledge.cases),
        *((f"causes.yaml: {cause.id}", cause.fixes) for cause in knowledge.causes),
    ):
        used += [(where, name) for fix in fixes for name in fix.applies_to.frameworks]
    counts = Counter(name for _, name in used)
    known = sorted(name for name, count in counts.items() if count > 1)
    for where, name in used:
        near = difflib.get_close_matches(name, known, n=1, cutoff=LIKENESS)
        # another number is another thing: fsdp2 is not fsdp
        if counts[name] == 1 and near and near[0] != name.rstrip("0123456789"):
            what = f"{where}: frameworks: {name!r} is named nowhere else"
            yield DataError(what, todo=f"did you mean {near[0]!r}?")
