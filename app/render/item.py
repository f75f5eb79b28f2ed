"""What stands under an id: a cause, a setting, a note or an entry, found and rendered as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.render.columns import paragraphs
from app.render.listing import note_list, render_cause, render_entry, render_note, render_setting
from kb.errors import NotFoundError
from kb.knowledge.labels import Words
from kb.types.entries import Entry
from kb.types.knowledge import Advice, Cause, Note

if TYPE_CHECKING:
    from kb.service import Service

NEAR_IDS = 3  # how many ids to suggest for a misspelt one
Item = Cause | Advice | Note | Entry


def find_item(service: Service, identifier: str) -> Item:
    """The cause, setting, note or entry called `identifier`.

    Raises:
        NotFoundError: there is none; ids spelt alike are named.
    """
    knowledge = service.knowledge
    item: Item | None = knowledge.cause_by_id.get(identifier)
    item = item or knowledge.advice_by_id.get(identifier) or knowledge.note_by_id.get(identifier)
    return item or _entry(service, identifier)


def _entry(service: Service, identifier: str) -> Entry:
    try:
        return service.entry(identifier)
    except NotFoundError as error:
        import difflib

        knowledge = service.knowledge
        known = [
            *(*knowledge.cause_by_id, *knowledge.case_by_id),
            *(*knowledge.advice_by_id, *knowledge.note_by_id),
        ]
        near = difflib.get_close_matches(identifier, known, n=NEAR_IDS)
        if not near:
            raise
        names = ", ".join(near)
        raise NotFoundError(
            error.what,
            todo=f"did you mean {names}?",
            reason="no_entry_near",
            values={"id": identifier, "near": names},
        ) from error


def render_item(service: Service, item: Item, words: Words, *, width: int) -> str:
    """All of it as text for a terminal, with the notes and the team's notices about it."""
    notes = service.knowledge.notes_naming(item.id)
    if isinstance(item, Cause):
        notices = service.notices_about(item.id, words.language)
        return render_cause(item, words, width=width, notes=notes, notices=notices)
    if isinstance(item, Advice):
        setting = render_setting(item, words, width=width)
        return paragraphs([setting, note_list(notes, words, width)])
    if isinstance(item, Note):
        return render_note(item, words, width=width)
    return render_entry(item, words, width=width)
