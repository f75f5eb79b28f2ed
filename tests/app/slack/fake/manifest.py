"""The app's manifest as Slack reads it: scopes, events, commands, shortcuts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

# The scope each event needs, by event of the manifest.
EVENT_SCOPES = {
    "app_mention": "app_mentions:read",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "message.mpim": "mpim:history",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What the app asks for when it is installed."""

    scopes: frozenset[str]
    events: frozenset[str]
    commands: frozenset[str]
    shortcuts: frozenset[tuple[str, str]]  # (message | global, callback id)

    def hears(self, event: str) -> bool:
        """Whether Slack delivers that kind of event to the app."""
        return event in self.events and EVENT_SCOPES.get(event, "") in self.scopes


def read_manifest(path: Path) -> Manifest:
    """Read a manifest in YAML."""
    body: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    features = body.get("features", {})
    subscriptions = body.get("settings", {}).get("event_subscriptions", {})
    return Manifest(
        scopes=frozenset(body["oauth_config"]["scopes"]["bot"]),
        events=frozenset(subscriptions.get("bot_events", ())),
        commands=frozenset(item["command"] for item in features.get("slash_commands", ())),
        shortcuts=frozenset(
            (item["type"], item["callback_id"]) for item in features.get("shortcuts", ())
        ),
    )
