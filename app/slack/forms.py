"""The menu behind "Not it" and the form behind "Add as incident"."""

from __future__ import annotations

from typing import Any

from app.labels import Words
from app.slack import kit
from app.slack.handles import pack
from app.slack.types import Handle, Message
from kb.types import UNKNOWN, Cause

MAX_FIX = 3000  # characters of a fix in the form


def wrong_message(causes: tuple[Cause, ...], words: Words, handle: Handle) -> Message:
    """Asks which cause it was."""
    options = [(cause.title.get(words.language), cause.id) for cause in causes]
    options.append((words("slack.not_known"), UNKNOWN))
    question = words("slack.which_cause")
    menu = kit.menu(words("slack.choose_cause"), "actual", options)
    # The block's id carries the diagnosis: a menu's options have no room for it.
    block_id = pack(handle)
    return kit.message(question, [kit.section(question), kit.actions([menu], block_id=block_id)])


def incident_form(
    causes: tuple[Cause, ...], words: Words, *, lead: str, metadata: str
) -> dict[str, Any]:
    """The form for cause and fix of an incident, both optional; `lead` is the likeliest cause."""
    menu = kit.menu(
        words("slack.choose_cause"),
        "cause",
        [(cause.title.get(words.language), cause.id) for cause in causes],
    )
    return {
        "type": "modal",
        "callback_id": "incident_form",
        "private_metadata": metadata,
        "title": kit.plain_text(words("slack.form_title"), kit.MAX_TITLE),
        "submit": kit.plain_text(words("slack.form_submit"), kit.MAX_TITLE),
        "close": kit.plain_text(words("slack.form_close"), kit.MAX_TITLE),
        "blocks": [
            kit.section(words("slack.form_about")),
            *([kit.context(words("slack.form_lead", title=lead))] if lead else []),
            {
                "type": "input",
                "block_id": "cause",
                "optional": True,
                "label": kit.plain_text(words("row.cause"), kit.MAX_FIELD),
                "element": menu,
            },
            {
                "type": "input",
                "block_id": "fix",
                "optional": True,
                "label": kit.plain_text(words("slack.form_fix"), kit.MAX_FIELD),
                "element": {
                    "type": "plain_text_input",
                    "action_id": "fix",
                    "multiline": True,
                    "max_length": MAX_FIX,
                },
            },
        ],
    }


def form_values(view: dict[str, Any]) -> tuple[str, str]:
    """Cause id and fix out of a submitted form, empty where left out."""
    values = view.get("state", {}).get("values", {})
    chosen = values.get("cause", {}).get("cause", {}).get("selected_option") or {}
    fix = values.get("fix", {}).get("fix", {}).get("value") or ""
    return str(chosen.get("value") or ""), str(fix)[:MAX_FIX]
