"""What people do in Slack: write, edit, run commands, press buttons, fill in forms."""

from __future__ import annotations

import secrets
import time
from collections.abc import Coroutine, Sequence
from typing import Any

from tests.slack import payloads
from tests.slack.delivery import Delivery, Kind
from tests.slack.hosts import ResponseUrl, ResponseUrls
from tests.slack.manifest import Manifest
from tests.slack.workspace import (
    Channel,
    Message,
    StoredFile,
    Workspace,
    as_typed,
    new_id,
    new_ts,
    new_workspace,
)


class People:
    """The actions of people; `tests.slack.fake_slack` carries them to the app."""

    manifest: Manifest
    workspaces: dict[str, Workspace]
    triggers: dict[str, tuple[str, float]]
    responses: ResponseUrls
    base: str
    files_host: str

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run in the servers' loop."""
        raise NotImplementedError

    def posted(self, workspace: Workspace, channel: Channel, message: Message) -> None:
        """Tell the app of a new message."""
        raise NotImplementedError

    def send(self, kind: Kind, body: dict[str, Any]) -> Delivery:
        """Hand a payload to the app."""
        raise NotImplementedError

    def workspace(self, domain: str) -> Workspace:
        """A new workspace with the app installed."""
        workspace = new_workspace(domain)
        self.workspaces[workspace.team] = workspace
        return workspace

    def team_of(self, channel: Channel) -> Workspace:
        """The workspace a channel belongs to."""
        return self.workspaces[channel.team]

    def say(
        self,
        channel: Channel,
        text: str,
        *,
        user: str = "ann",
        mention: bool = False,
        thread: Message | None = None,
        files: Sequence[StoredFile] = (),
        raw: bool = False,
    ) -> Message:
        """A person writes; `raw` text holds Slack's own markup, else it is escaped as typed."""
        workspace = self.team_of(channel)
        body = text if raw else as_typed(text)
        if mention:
            body = f"<@{workspace.bot_user}> {body}"
        message = Message(
            ts=new_ts(),
            channel=channel.id,
            user=workspace.add_user(user).id,
            text=body,
            thread_ts=thread.root if thread else "",
            files=list(files),
        )
        self.run(self._write(workspace, channel, message))
        return message

    async def _write(self, workspace: Workspace, channel: Channel, message: Message) -> None:
        channel.messages.append(message)
        self.posted(workspace, channel, message)

    def edit(self, channel: Channel, message: Message, text: str) -> None:
        """The author changes a message."""
        workspace = self.team_of(channel)
        message.versions.append((message.text, message.blocks))
        message.text = as_typed(text)
        body = payloads.edit_event(workspace, channel, message, self.files_host)
        self.send("events_api", body)

    def slash(
        self, channel: Channel, text: str, *, command: str = "/timeout", user: str = "ann"
    ) -> Delivery:
        """A person runs a slash command.

        Raises:
            ValueError: the manifest has no such command.
        """
        if command not in self.manifest.commands:
            raise ValueError(f"{command} is not in the manifest")
        workspace = self.team_of(channel)
        who = workspace.add_user(user).id
        urls = self._urls(workspace, channel, who, None)
        body = payloads.slash_command(workspace, channel, who, command, as_typed(text), urls)
        return self.send("slash_commands", body)

    def click(
        self,
        channel: Channel,
        message: Message,
        action: str,
        *,
        user: str = "ann",
        choice: str | None = None,
    ) -> Delivery:
        """A person presses the element with that action id, or chooses the option `choice`."""
        workspace = self.team_of(channel)
        who = workspace.add_user(user).id
        element, block_id = find_element(message, action)
        made: dict[str, Any] = {
            "action_id": element["action_id"],
            "block_id": block_id,
            "type": element["type"],
            "action_ts": new_ts(),
        }
        if element["type"] == "button":
            made |= {"text": element["text"], "value": element.get("value", "")}
        else:
            options = {item["value"]: item for item in element["options"]}
            made["selected_option"] = options[choice or ""]
        urls = self._urls(workspace, channel, who, message)
        body = payloads.block_actions(workspace, channel, message, who, made, urls, self.files_host)
        return self.send("interactive", body)

    def message_shortcut(
        self, channel: Channel, message: Message, callback_id: str, *, user: str = "ann"
    ) -> Delivery:
        """A person picks the app's entry in a message's menu.

        Raises:
            ValueError: the manifest has no such entry.
        """
        if ("message", callback_id) not in self.manifest.shortcuts:
            raise ValueError(f"the manifest has no message shortcut {callback_id!r}")
        workspace = self.team_of(channel)
        who = workspace.add_user(user).id
        urls = self._urls(workspace, channel, who, message)
        body = payloads.message_shortcut(
            workspace, channel, message, who, callback_id, urls, self.files_host
        )
        return self.send("interactive", body)

    def submit(
        self, workspace: Workspace, view: dict[str, Any], values: dict[str, Any], *, user: str
    ) -> Delivery:
        """A person submits a modal with `values` by action id."""
        who = workspace.add_user(user).id
        urls = {"trigger_id": self._trigger(workspace)}
        body = payloads.view_submission(workspace, view, who, values, urls)
        return self.send("interactive", body)

    def _urls(
        self, workspace: Workspace, channel: Channel, user: str, message: Message | None
    ) -> dict[str, str]:
        name = secrets.token_hex(12)
        address = ResponseUrl(workspace=workspace, channel=channel, user=user, message=message)
        self.responses.open[name] = address
        return {
            "response_url": f"http://{self.base}/respond/{name}",
            "trigger_id": self._trigger(workspace),
        }

    def _trigger(self, workspace: Workspace) -> str:
        trigger = f"{new_id('t')}.{secrets.token_hex(8)}"
        self.triggers[trigger] = (workspace.team, time.monotonic())
        return trigger


def find_element(message: Message, action: str) -> tuple[dict[str, Any], str]:
    """The interactive element of a message with that action id, and its block's id.

    Raises:
        AssertionError: there is none; names those there are.
    """
    known = []
    for at, block in enumerate(message.blocks):
        for element in (*block.get("elements", ()), block.get("accessory") or {}):
            if "action_id" in element:
                known.append(element["action_id"])
                if element["action_id"] == action:
                    return element, block.get("block_id") or f"auto{at}"
    raise AssertionError(f"no element {action!r} among {known}")
