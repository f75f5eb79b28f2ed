"""Resources: causes, notes, cases and entries of the team, each under an address of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

import click

from app.render.escape import plain
from app.render.item import Item, find_item, render_item
from kb.errors import NotFoundError
from kb.knowledge.labels import Words
from kb.types.entries import Filters
from kb.types.knowledge import Cause, Note

if TYPE_CHECKING:
    from kb.service import Service

SCHEME = "timeout-kb"
MIME = "text/plain"
WIDTH = 100
PAGE = 100  # resources, tools or prompts a page
CAUSES, NOTES, CASES, ENTRIES = "causes", "notes", "cases", "entries"
KINDS = (CAUSES, NOTES, CASES, ENTRIES)


class ResourceRow(NamedTuple):
    """A resource in a list."""

    uri: str
    name: str
    title: str


def uri_of(kind: str, identifier: str) -> str:
    """The address of what stands under an id."""
    return f"{SCHEME}://{kind}/{quote(identifier, safe='')}"


def uri_of_item(service: Service, identifier: str) -> str:
    """The same where the kind is not known: all others are entries people added."""
    knowledge = service.knowledge
    for kind, known in (
        (CAUSES, knowledge.cause_by_id),
        (NOTES, knowledge.note_by_id),
        (CASES, knowledge.case_by_id),
    ):
        if identifier in known:
            return uri_of(kind, identifier)
    return uri_of(ENTRIES, identifier)


def resource_rows(service: Service, words: Words) -> list[ResourceRow]:
    """All resources: causes, notes, cases, then the incidents by id."""
    return [
        ResourceRow(uri_of(kind, identifier), identifier, plain(title))
        for kind, identifier, title in _listed(service, words)
    ]


def _listed(service: Service, words: Words) -> Iterator[tuple[str, str, str]]:
    knowledge = service.knowledge
    for kind, items in (
        (CAUSES, knowledge.causes),
        (NOTES, knowledge.notes),
        (CASES, knowledge.cases),
        (ENTRIES, service.store.iter_entries(Filters(kinds=("incident",)))),
    ):
        for item in items:
            yield kind, item.id, item.title.get(words.language)


def read_resource(service: Service, uri: str, words: Words) -> str:
    """The text of a resource.

    Raises:
        NotFoundError: there is none under that address.
    """
    head, _, rest = uri.partition("://")
    kind, _, name = rest.partition("/")
    if head != SCHEME or kind not in KINDS or not name:
        raise NotFoundError(
            f"{uri!r} is no address of this server",
            todo=f"use {SCHEME}://KIND/ID with KIND one of {', '.join(KINDS)}",
            reason="no_resource",
            values={"uri": uri, "kinds": ", ".join(KINDS)},
        )
    item = find_item(service, unquote(name))
    if _kind(item) != kind:
        raise NotFoundError(
            f"{unquote(name)!r} is not one of the {kind}",
            todo=f"read {uri_of_item(service, item.id)}",
            reason="other_resource",
            values={"id": item.id, "uri": uri_of_item(service, item.id)},
        )
    text = click.unstyle(render_item(service, item, words, width=WIDTH))
    return text if kind in (CAUSES, NOTES) else f"{words('agent.data')}\n\n{text}"


def _kind(item: Item) -> str:
    if isinstance(item, Cause):
        return CAUSES
    if isinstance(item, Note):
        return NOTES
    return CASES if getattr(item, "kind", "") == "case" else ENTRIES


def complete_id(service: Service, prefix: str, kind: str = "") -> list[str]:
    """Ids that begin with `prefix`, of one kind or of all."""
    knowledge = service.knowledge
    known: dict[str, Iterable[str]] = {
        CAUSES: knowledge.cause_by_id,
        NOTES: knowledge.note_by_id,
        CASES: knowledge.case_by_id,
    }
    groups = [known[kind]] if kind in known else list(known.values())
    return sorted(name for group in groups for name in group if name.startswith(prefix))
