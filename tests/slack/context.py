"""One call of the Web API with the workspace its token belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.slack.calls import Call, SlackError
from tests.slack.workspace import Channel, Workspace


@dataclass(frozen=True, kw_only=True)
class Context:
    """A call with the workspace its token belongs to."""

    workspace: Workspace
    call: Call
    backend: Any

    def need(self, scope: str) -> None:
        """Refuse unless the app was installed with `scope`."""
        if scope not in self.backend.manifest.scopes:
            provided = ",".join(sorted(self.backend.manifest.scopes))
            raise SlackError("missing_scope", needed=scope, provided=provided)

    def get(self, name: str) -> str:
        """A required argument."""
        value = self.call.arguments.get(name)
        if value in (None, ""):
            raise SlackError("invalid_arguments", response_metadata={"messages": [name]})
        return str(value)

    def channel(self, *, scopes: dict[str, str] | None = None) -> Channel:
        """The channel of the call; one of another workspace does not exist."""
        channel = self.workspace.channels.get(self.get("channel"))
        if channel is None:
            raise SlackError("channel_not_found")
        if scopes:
            self.need(scopes[channel.kind])
        return channel
