"""Buttons, menus and forms of earlier answers; all they need is in the click and the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
from slack_sdk.errors import SlackApiError

from app.slack import forms, lookup_blocks
from app.slack.handles import unpack
from app.slack.types import Handle, Message, Place, conversation_id
from app.slack.voice import Voice
from app.slack.workspaces import reason
from kb.errors import InputError, KBError
from kb.types import Language

if TYPE_CHECKING:
    from app.slack.office import Office
    from app.slack.workspaces import Workspace

ANSWER = "answer_"  # action of an option of a question, its number behind


@dataclass(frozen=True, slots=True, kw_only=True)
class Click:
    """A click on something of an answer: who, where, on what, with which value.

    `place` is where an answer for all goes, `within` the thread the clicked message stands in,
    empty for the channel itself. `alone` if only the person saw that message.
    """

    action: str
    value: str
    chosen: str
    place: Place
    within: str
    user: str
    trigger: str
    alone: bool

    @property
    def handle(self) -> Handle:
        """The diagnosis it belongs to.

        Raises:
            InputError: the value is none of ours.
        """
        return unpack(self.value)

    @property
    def private(self) -> Place:
        """Where an answer for the person alone goes: Slack shows it in a begun thread only."""
        return replace(self.place, only_for=self.user, thread=self.within)

    @property
    def language(self) -> Language:
        """The language of what was clicked on."""
        try:
            return self.handle.language
        except InputError:
            return "en"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormOrigin:
    """What a form remembers while it is open."""

    handle: Handle
    place: Place


def click_of(body: dict[str, Any]) -> tuple[Click, str]:
    """The click in Slack's payload, and a key of it that no other click has."""
    action = body["actions"][0]
    container = body.get("container") or {}
    message = body.get("message") or {}
    team = str((body.get("team") or {}).get("id") or "")
    channel = (body.get("channel") or {}).get("id") or container.get("channel_id") or ""
    ts = message.get("ts") or container.get("message_ts") or ""
    alone = bool(container.get("is_ephemeral"))
    within = message.get("thread_ts") or container.get("thread_ts") or ""
    # A direct message needs no thread; elsewhere what a click brings belongs under its message.
    direct = str(channel).startswith("D")
    thread = within or ("" if alone or direct else ts)
    user = str((body.get("user") or {}).get("id") or "")
    chosen = action.get("selected_option") or {}
    click = Click(
        action=str(action.get("action_id") or ""),
        # A menu's block carries the diagnosis, a button its own value.
        value=str(action.get("block_id") if chosen else action.get("value")),
        chosen=str(chosen.get("value") or ""),
        place=Place(
            team=team,
            channel=str(channel),
            thread=str(thread),
            response_url=str(body.get("response_url") or ""),
        ),
        within=str(within),
        user=user,
        trigger=str(body.get("trigger_id") or ""),
        alone=alone,
    )
    return click, f"click:{team}:{user}:{click.action}:{action.get('action_ts')}:{ts}"


class Clicks:
    """Answers clicks of every workspace."""

    def __init__(self, office: Office) -> None:
        desk = self._desk = office.desk
        self._workspaces = office.workspaces
        self._pool = office.pool
        self._counters = office.counters
        self._log = structlog.get_logger()
        self._actions: dict[str, Callable[[Click], Message]] = {
            "right": lambda click: desk.right(click.handle, user=click.user),
            "wrong": self._which_cause,
            "actual": lambda click: desk.wrong(click.handle, click.chosen, user=click.user),
            "fixes": lambda click: desk.fixes(click.handle),
            "cases": lambda click: desk.cases(click.handle),
            "next_check": self._next_check,
        }

    async def answer(self, click: Click, *, key: str) -> None:
        """Answer a click once."""
        workspace = self._workspaces.find(click.place.team)
        if workspace is None:
            return
        if not await self._pool.quick(lambda: self._desk.first_time(key)):
            self._counters.repeated.inc()
            return
        self._counters.asked.labels("click").inc()
        alone = click.alone or click.action in ("right", "wrong", "actual")
        place = click.private if alone else click.place
        work = self._actions.get(click.action)
        if click.action.startswith(ANSWER):
            work = self._answer
        if work is None:
            return
        chosen = work
        await self._told(
            workspace,
            place,
            lambda: chosen(click),
            private=click.private,
            language=click.language,
        )

    async def _told(
        self,
        workspace: Workspace,
        place: Place,
        work: Callable[[], Message],
        *,
        private: Place,
        language: Language,
    ) -> None:
        """Do the work and say what comes of it; a failure is told to the person alone."""
        try:
            message = await self._pool.compute(work)
        except KBError as error:
            self._counters.failed.labels(error.code).inc()
            self._log.warning("slack click failed", code=error.code, what=error.what)
            message = lookup_blocks.trouble(error, self._desk.words(language))
            place = private
        await Voice(self._workspaces, workspace, place).say(message)

    def _which_cause(self, click: Click) -> Message:
        handle = click.handle
        return forms.wrong_message(self._desk.causes, self._desk.words(handle.language), handle)

    def _next_check(self, click: Click) -> Message:
        place = click.place
        there = conversation_id(place.team, place.channel, place.thread)
        return self._desk.next_check(click.handle, conversation=there).message

    def _answer(self, click: Click) -> Message:
        """A number of the question's options, as if it was typed."""
        number = click.action.removeprefix(ANSWER)
        handle = click.handle
        return self._desk.say(
            number, conversation=handle.conversation, language=handle.language
        ).message

    # --- the form --------------------------------------------------------------------------------

    async def open_form(self, click: Click) -> None:
        """Open the form for an incident: within three seconds, so it waits for nothing."""
        workspace = self._workspaces.find(click.place.team)
        if workspace is None:
            return
        try:
            handle = click.handle
            _, lead = await self._pool.quick(lambda: self._desk.lead(handle))
            origin = FormOrigin(handle=handle, place=replace(click.place, response_url=""))
            words = self._desk.words(handle.language)
            metadata = msgspec.json.encode(origin).decode()
            form = forms.incident_form(self._desk.causes, words, lead=lead, metadata=metadata)
            await workspace.client.views_open(trigger_id=click.trigger, view=form)
        except KBError as error:
            message = lookup_blocks.trouble(error, self._desk.words(click.language))
            await Voice(self._workspaces, workspace, click.private).say(message)
        except SlackApiError as error:
            self._log.warning("slack form refused", error=reason(error))

    async def submitted(self, view: dict[str, Any], *, user: str) -> None:
        """Keep the incident a form describes; say so where the button stood."""
        try:
            metadata = str(view.get("private_metadata") or "").encode()
            origin = msgspec.json.decode(metadata, type=FormOrigin)
        except msgspec.DecodeError as error:
            raise InputError("this form is none of ours") from error
        workspace = self._workspaces.find(origin.place.team)
        key = f"form:{origin.place.team}:{view.get('id')}"
        if workspace is None or not await self._pool.quick(lambda: self._desk.first_time(key)):
            return
        cause, fix = forms.form_values(view)
        self._counters.asked.labels("form").inc()
        await self._told(
            workspace,
            origin.place,
            lambda: self._desk.add_incident(origin.handle, cause=cause, fix=fix),
            private=replace(origin.place, only_for=user),
            language=origin.handle.language,
        )
