"""Buttons, menus and forms of earlier answers; all they need is in the click and the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
from slack_sdk.errors import SlackApiError

from app.slack.blocks import primitives as kit
from app.slack.blocks.diagnosis import cases_message, fixes_message
from app.slack.blocks.primitives import Element, SlackMessage
from app.slack.delivery import Poster
from app.slack.requests import OPTION, ButtonClick, Destination, DiagnosisRef, conversation_id
from app.slack.workspaces import reason, slack_call
from kb.errors import InputError, KBError
from kb.types.vocabulary import UNKNOWN

if TYPE_CHECKING:
    from app.slack.bot import BotContext
    from app.slack.service_calls import ServiceCalls
    from kb.knowledge.labels import Words

PRIVATE = ("right", "wrong", "actual")  # actions answered to the person alone
FORM = "incident_form"
MAX_FIX = 3000  # characters of a fix in the form


# --- clicks --------------------------------------------------------------------------------------


async def answer_click(bot: BotContext, click: ButtonClick) -> None:
    """Answer a click once."""
    action = ACTIONS.get(click.action, _option)
    private = click.ephemeral or click.action in PRIVATE
    await bot.answer_once(
        partial(action, bot.calls, click),
        key=click.key,
        to=click.private if private else click.destination,
        errors_to=click.private,
        language=click.language,
    )


def _words(calls: ServiceCalls, click: ButtonClick) -> Words:
    return calls.words(click.ref.language)


def _cause_menu(calls: ServiceCalls, click: ButtonClick) -> SlackMessage:
    """Asks which cause it was."""
    words = _words(calls, click)
    options = [
        *_options(calls, words),
        (words("slack.not_known"), UNKNOWN),
    ]
    question = words("slack.which_cause")
    menu = kit.menu(words("slack.choose_cause"), "actual", options)
    # The block's id carries the diagnosis: a menu's options have no room for it.
    row = kit.actions([menu], block_id=click.ref.encode())
    return kit.message(question, [kit.section(question), row])


def _options(calls: ServiceCalls, words: Words) -> list[tuple[str, str]]:
    causes = calls.service.knowledge.causes
    return [(cause.title.get(words.language), cause.id) for cause in causes]


def _next_check(calls: ServiceCalls, click: ButtonClick) -> SlackMessage:
    to = click.destination
    conversation = conversation_id(to.team, to.channel, to.thread)
    return calls.next_check(click.ref, conversation=conversation)


def _option(calls: ServiceCalls, click: ButtonClick) -> SlackMessage:
    """A number of the question's options, as if it was typed."""
    number, ref = click.action.removeprefix(OPTION), click.ref
    return calls.reply(number, conversation=ref.conversation, language=ref.language)


ACTIONS: dict[str, Callable[[ServiceCalls, ButtonClick], SlackMessage]] = {
    "right": lambda calls, click: calls.judge(click.ref, user=click.user),
    "wrong": _cause_menu,
    "actual": lambda calls, click: calls.judge(click.ref, user=click.user, actual=click.option),
    "fixes": lambda calls, click: fixes_message(calls.diagnosis(click.ref), _words(calls, click)),
    "cases": lambda calls, click: cases_message(calls.diagnosis(click.ref), _words(calls, click)),
    "next_check": _next_check,
}


# --- the form behind "Add as incident" -----------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FormOrigin:
    """What a form remembers while it is open."""

    ref: DiagnosisRef
    destination: Destination


async def open_form(bot: BotContext, click: ButtonClick) -> None:
    """Open the form for an incident: within three seconds, so it waits for nothing."""
    workspace = bot.workspaces.find(click.destination.team)
    if workspace is None:
        return
    try:
        form = await asyncio.to_thread(_incident_form, bot.calls, click)
        await slack_call(workspace.client.views_open(trigger_id=click.trigger, view=form))
    except KBError as error:
        message = kit.error_message(error, bot.calls.words(click.language))
        await Poster(bot.workspaces, workspace, click.private).post(message)
    except SlackApiError as error:
        structlog.get_logger().warning("slack form refused", error=reason(error))


def _incident_form(calls: ServiceCalls, click: ButtonClick) -> dict[str, Any]:
    """The form for cause and fix of an incident, both optional; it names the likeliest cause."""
    words = _words(calls, click)
    lead = calls.title(calls.lead(click.ref), click.ref.language)
    origin = FormOrigin(ref=click.ref, destination=replace(click.destination, response_url=""))
    causes = _options(calls, words)
    fix = {
        "type": "plain_text_input",
        "action_id": "fix",
        "multiline": True,
        "max_length": MAX_FIX,
    }
    return {
        "type": "modal",
        "callback_id": FORM,
        "private_metadata": msgspec.json.encode(origin).decode(),
        "title": kit.plain_text(words("slack.form_title"), kit.MAX_TITLE),
        "submit": kit.plain_text(words("slack.form_submit"), kit.MAX_TITLE),
        "close": kit.plain_text(words("slack.form_close"), kit.MAX_TITLE),
        "blocks": [
            kit.section(words("slack.form_about")),
            *([kit.context(words("slack.form_lead", title=lead))] if lead else []),
            _input(words("row.cause"), kit.menu(words("slack.choose_cause"), "cause", causes)),
            _input(words("slack.form_fix"), fix),
        ],
    }


def _input(label: str, element: Element) -> Element:
    """An optional field; its block has the name of its element."""
    return {
        "type": "input",
        "block_id": element["action_id"],
        "optional": True,
        "label": kit.plain_text(label, kit.MAX_FIELD),
        "element": element,
    }


async def submit_form(bot: BotContext, view: dict[str, Any], *, user: str) -> None:
    """Store the incident a form describes; say so where the button stood.

    Raises:
        InputError: the form is none of ours.
    """
    try:
        metadata = str(view.get("private_metadata") or "").encode()
        origin = msgspec.json.decode(metadata, type=FormOrigin)
    except msgspec.DecodeError as error:
        raise InputError("this form is none of ours") from error
    values = view.get("state", {}).get("values", {})
    option = values.get("cause", {}).get("cause", {}).get("selected_option") or {}
    fix = values.get("fix", {}).get("fix", {}).get("value") or ""
    to = origin.destination
    await bot.answer_once(
        partial(
            bot.calls.add_incident,
            origin.ref,
            cause=str(option.get("value") or ""),
            fix=str(fix)[:MAX_FIX],
            user=user,
        ),
        key=f"form:{to.team}:{view.get('id')}",
        to=to,
        errors_to=replace(to, only_for=user),
        language=origin.ref.language,
    )
