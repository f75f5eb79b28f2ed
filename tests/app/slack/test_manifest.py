"""The shipped manifest asks for what the bot uses and for nothing more."""

from __future__ import annotations

from app.slack.bot import SHORTCUT
from tests.app.slack.fake.manifest import EVENT_SCOPES, Manifest

# What the bot calls or offers beside events, by the scope it needs.
USED = frozenset({"chat:write", "commands", "files:read", "files:write", "reactions:write"})


def test_every_event_is_heard(manifest: Manifest) -> None:
    """Slack delivers an event only with its scope."""
    assert {event for event in manifest.events if not manifest.hears(event)} == set()
    assert {"app_mention", "message.im", "message.channels"} <= manifest.events


def test_no_scope_is_asked_for_in_vain(manifest: Manifest) -> None:
    """Every scope belongs to an event or to something the bot does."""
    assert manifest.scopes == USED | {EVENT_SCOPES[event] for event in manifest.events}


def test_command_and_shortcut_are_the_bots(manifest: Manifest) -> None:
    """The names in the manifest are the ones the bot listens to."""
    assert manifest.commands == {"/timeout"}
    assert manifest.shortcuts == {("message", SHORTCUT)}
