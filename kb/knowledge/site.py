"""A team's own knowledge: a folder (TIMEOUT_KB_SITE) of files in the formats of `data/`.

All files are optional: patterns.yaml, advice.yaml, causes.yaml (fixes and runbooks for shipped
causes), hosts.yaml, notices.yaml, cases/*.md. It adds to the shipped knowledge and replaces
nothing of it; what it adds is marked as the team's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from kb.errors import DataError
from kb.knowledge.cases import SITE_CASES_KEY, load_case
from kb.knowledge.load import Knowledge, read_yaml, wrong_references
from kb.knowledge.schema import nearest
from kb.types.entries import Entry
from kb.types.knowledge import Advice, BadHost, Cause, Pattern, SiteCause, TeamNotice

SITE_FILES: dict[str, Any] = {  # what each file of a site folder is read into
    "patterns.yaml": tuple[Pattern, ...],
    "advice.yaml": tuple[Advice, ...],
    "causes.yaml": tuple[SiteCause, ...],
    "hosts.yaml": tuple[BadHost, ...],
    "notices.yaml": tuple[TeamNotice, ...],
}
MAX_WEIGHT = 6.0  # nats, either way; shipped patterns weigh 4 at most
MAX_BYTES = 4 << 20  # of a file


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFolder:
    """What the files of a site folder hold, each right by itself."""

    patterns: tuple[Pattern, ...] = ()
    advice: tuple[Advice, ...] = ()
    causes: tuple[SiteCause, ...] = ()
    hosts: tuple[BadHost, ...] = ()
    notices: tuple[TeamNotice, ...] = ()
    cases: tuple[Entry, ...] = ()


def site_files(folder: Path) -> list[Path]:
    """The files of a site folder that are read, in a fixed order.

    Raises:
        DataError: there is no such folder, one of its files is none that is read, is too large or
            is no regular file.
    """
    try:
        names = sorted(path.name for path in folder.iterdir())
        cases = sorted((folder / "cases").glob("*.md"))
    except OSError as error:
        raise DataError(
            f"{folder}: {error.strerror}", todo="point TIMEOUT_KB_SITE at a folder, or unset it"
        ) from error
    for name in names:
        if name.endswith((".yaml", ".yml")) and name not in SITE_FILES:
            todo = nearest(name, list(SITE_FILES))
            raise DataError(f"{folder / name} is no file of a site folder", todo=todo)
    files = [*(folder / name for name in SITE_FILES if name in names), *cases]
    for path in files:
        if not path.is_file():
            raise DataError(f"{path} is no file that can be read", todo="remove or replace it")
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"{path} is larger than {MAX_BYTES} bytes", todo="shorten it")
    return files


def site_stamp(folder: Path | None) -> tuple[tuple[str, int, int], ...]:
    """Something that changes with the files of a site folder; empty for none and a broken one."""
    if folder is None:
        return ()
    try:
        states = [(path.name, path.stat()) for path in site_files(folder)]
    except (DataError, OSError):
        return ()
    return tuple((name, state.st_mtime_ns, state.st_size) for name, state in states)


def with_site(knowledge: Knowledge, folder: Path) -> Knowledge:
    """`knowledge` with what the site folder adds.

    Raises:
        DataError: a file breaks its schema, an id is taken, or a name stands for nothing; the
            message names file, field and value.
    """
    site = site_of({path: read() for path, read in site_readers(folder).items()})
    for error in wrong_in_site(knowledge, site, folder):
        raise error
    return _joined(knowledge, site)


def site_readers(folder: Path) -> dict[Path, Callable[[], Any]]:
    """What reads each of the folder's files.

    Raises:
        DataError: see `site_files`.
    """
    return {
        path: partial(load_case, path, folder=SITE_CASES_KEY)
        if path.suffix == ".md"
        else partial(read_yaml, path, SITE_FILES[path.name], name=str(path))
        for path in site_files(folder)
    }


def site_of(values: Mapping[Path, Any]) -> SiteFolder:
    """What was read of each file as one value, marked as the team's."""
    fields = {path.stem: value for path, value in values.items() if path.suffix != ".md"}
    for name in ("patterns", "advice"):
        fields[name] = tuple(replace(item, origin="site") for item in fields.get(name, ()))
    fields["causes"] = tuple(
        replace(cause, fixes=tuple(replace(fix, origin="site") for fix in cause.fixes))
        for cause in fields.get("causes", ())
    )
    cases = tuple(case for path, case in values.items() if path.suffix == ".md")
    return SiteFolder(**fields, cases=cases)


def wrong_in_site(knowledge: Knowledge, site: SiteFolder, folder: Path) -> Iterator[DataError]:
    """Ids that are taken, names that stand for nothing, and values out of bounds."""
    shipped: dict[str, tuple[list[str], Collection[str]]] = {
        "patterns.yaml": ([item.id for item in site.patterns], knowledge.pattern_by_id),
        "advice.yaml": ([item.id for item in site.advice], knowledge.advice_by_id),
        "cases": ([item.id for item in site.cases], knowledge.case_by_id),
        "causes.yaml": (
            [fix.id for cause in site.causes for fix in cause.fixes],
            {fix.id for cause in knowledge.causes for fix in cause.fixes},
        ),
        "hosts.yaml": ([item.name.casefold() for item in site.hosts], ()),
        "notices.yaml": ([item.id for item in site.notices], ()),
    }
    broken = False
    for name, (ids, taken) in shipped.items():
        for identifier in dict.fromkeys(ids):
            if identifier in taken or ids.count(identifier) > 1:
                broken = True
                who = "the shipped knowledge" if identifier in taken else "another entry"
                what = f"{folder / name}: id {identifier!r} is that of {who}"
                yield DataError(what, todo="choose another id")
    for where, cause in _causes_named(site):
        if cause not in knowledge.cause_by_id:
            broken = True
            todo = nearest(cause, list(knowledge.cause_by_id))
            yield DataError(f"{folder / where}: {cause!r} is no cause", todo=todo)
    yield from _out_of_bounds(site, folder)
    if not broken:
        for error in wrong_references(_joined(knowledge, site)):
            yield DataError(f"{folder}/{error.what}", todo=error.todo)


def _causes_named(site: SiteFolder) -> Iterator[tuple[str, str]]:
    """Where causes are named that the shipped checks do not look at."""
    for cause in site.causes:
        yield "causes.yaml: id", cause.id
    for notice in site.notices:
        for name in notice.causes:
            yield f"notices.yaml: causes of {notice.id}", name


def _out_of_bounds(site: SiteFolder, folder: Path) -> Iterator[DataError]:
    for where, weights in _weights_named(site):
        for cause, weight in weights.items():
            if not (math.isfinite(weight) and abs(weight) <= MAX_WEIGHT):
                what = f"{folder / where}: {cause}: {weight} is no weight"
                yield DataError(what, todo=f"use nats from {-MAX_WEIGHT} to {MAX_WEIGHT}")
    for where, url in _addresses(site):
        if not url.lower().startswith(("http://", "https://")):
            what = f"{folder / where}: url {url!r} is no address"
            yield DataError(what, todo="begin it with https://")
    for host in site.hosts:
        if not host.name.strip() or any(sign in host.name for sign in " *?[]\n\t"):
            what = f"{folder}/hosts.yaml: name {host.name!r} is no host"
            yield DataError(what, todo="write one host's name as the logs have it")
    for notice in site.notices:
        if notice.since and notice.until and notice.since > notice.until:
            what = f"{folder}/notices.yaml: until of {notice.id}: {notice.until} is before since"
            yield DataError(what, todo="swap the two dates")


def _weights_named(site: SiteFolder) -> Iterator[tuple[str, Mapping[str, float]]]:
    for pattern in site.patterns:
        yield f"patterns.yaml: causes of {pattern.id}", pattern.causes
        yield f"patterns.yaml: sound of {pattern.id}", pattern.sound
    for advice in site.advice:
        for rule in advice.rules:
            yield f"advice.yaml: causes of {advice.id}", rule.causes


def _addresses(site: SiteFolder) -> Iterator[tuple[str, str]]:
    for cause in site.causes:
        for runbook in cause.runbooks:
            yield f"causes.yaml: runbooks of {cause.id}", runbook.url
    for notice in site.notices:
        if notice.url:
            yield f"notices.yaml: {notice.id}", notice.url


def _joined(knowledge: Knowledge, site: SiteFolder) -> Knowledge:
    added = {cause.id: cause for cause in site.causes}
    return replace(
        knowledge,
        patterns=(*knowledge.patterns, *site.patterns),
        advice=(*knowledge.advice, *site.advice),
        causes=tuple(_with_own(cause, added.get(cause.id)) for cause in knowledge.causes),
        cases=(*knowledge.cases, *site.cases),
        hosts=site.hosts,
        notices=site.notices,
    )


def _with_own(cause: Cause, own: SiteCause | None) -> Cause:
    if own is None:
        return cause
    return replace(
        cause, fixes=(*cause.fixes, *own.fixes), runbooks=(*cause.runbooks, *own.runbooks)
    )


def is_of_site(case: Entry) -> bool:
    """Whether a case is of the site folder."""
    return case.source_key.startswith(SITE_CASES_KEY)


def bad_hosts(hosts: Iterable[BadHost], names: Iterable[str]) -> dict[BadHost, list[str]]:
    """The hosts among `names` that are known to be bad, in the order of names, with those."""
    listed = {host.name.casefold(): host for host in hosts}
    found: dict[BadHost, list[str]] = {}
    for name in names:
        folded = name.casefold()
        host = listed.get(folded) or listed.get(folded.partition(".")[0])
        if host is not None:
            found.setdefault(host, []).append(name)
    return found
