"""The chat page: a log or a question in, an answer with its sources, the next question back."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Any

import streamlit as st

from app.render.escape import md_text, plain
from app.web.components import actions, cards, chat_model, chat_reply, markup
from app.web.components.answer_state import uploaded
from app.web.components.markup import html
from app.web.components.outcome_form import cause_choice
from app.web.context import LANG, chat, interface_words, language, parameter, service
from app.web.recent_answers import person
from kb.chat.store import ID_BYTES, by_link
from kb.chat.types import Conversation, IncidentOutcome, Question, Reply
from kb.errors import KBError, NotFoundError
from kb.knowledge.labels import Words
from kb.types.vocabulary import Language

CONVERSATION = "c"  # its id in the address
INPUT = "chat_input"
MESSAGE = "chat_message"  # pending: texts and files to be answered
STARTED = "chat_started"  # id of the conversation begun here, until the address has it
LAST_LANGUAGE = "chat_language"  # language of the interface at the last message
JUDGED = "chat_judged"  # conversations whose last verdict was judged in this visit
ACTUAL = "chat_actual"  # the cause chosen in its place
LONG_LINES, LONG_CHARS = 6, 500  # of a message that is shown folded
EXAMPLES = ("page.chat_example_log", "page.chat_example_setting", "page.chat_example_words")


def page() -> None:
    """Show the conversation and take the next message."""
    words = interface_words()
    chat_model.forget_model(parameter(CONVERSATION))
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        markup.show(markup.heading(words("page.chat"), level=1))
        st.button(words("page.new_conversation"), key="chat_new", on_click=_leave)
    try:
        known = _current_conversation()
    except NotFoundError:
        _expired(words)
        return
    if known is None or not known.turns:
        _welcome(words)
    else:
        _show_turns(known, words)
    st.chat_input(words("page.chat_hint"), key=INPUT, accept_file="multiple", on_submit=_typed)
    with actions.pending(MESSAGE) as message:
        reply = _answer(message, known, words)
    actions.show_notice(MESSAGE, words)
    if reply is not None:
        _redraw(reply)
    if actions.is_pending(MESSAGE):
        st.rerun()  # for the next message, though this one failed


def _current_conversation() -> Conversation | None:
    """The conversation in the address, else the one begun here; None where neither is kept.

    A run that is ended while it answers a first message does not come to naming the conversation.

    Raises:
        NotFoundError: that in the address is unknown or has expired.
    """
    if identifier := parameter(CONVERSATION):
        st.session_state.pop(STARTED, None)
        return chat().conversation(by_link(identifier))
    try:
        known = chat().conversation(st.session_state.get(STARTED, ""))
    except NotFoundError:
        return None
    _name(known.id)
    return known


def _name(identifier: str) -> None:
    """Put the conversation into the address, where a reload finds it."""
    if parameter(CONVERSATION) != identifier:
        st.query_params.from_dict({LANG: language(), CONVERSATION: identifier})


def _leave() -> None:
    """Out of this conversation; it stays under its address."""
    st.query_params.pop(CONVERSATION, None)
    st.session_state.pop(STARTED, None)
    actions.cancel(MESSAGE)


def _expired(words: Words) -> None:
    days = service().settings.chat_days
    markup.show(markup.note(words("page.conversation_gone", days=days), "possible", role="alert"))


def _welcome(words: Words) -> None:
    markup.show(markup.paragraph(words("page.chat_lead")))
    with st.container(horizontal=True):
        for name in EXAMPLES:
            _button(words(name), words(name), key=name)


# --- what was said so far ----------------------------------------------------------------------


def _show_turns(known: Conversation, words: Words) -> None:
    for at, turn in enumerate(known.turns):
        _show_message(chat_reply.message_text(known.turns, at), words)
        with st.chat_message("assistant"):
            following = known.turns[at + 1].asked if at + 1 < len(known.turns) else None
            show_reply(turn.reply, words, following)
    _feedback(known, words)


def _show_message(text: str, words: Words) -> None:
    with st.chat_message("user"):
        lines = text.splitlines()
        if not text.strip():
            markup.show(markup.faint(words("page.files_given")))
        elif len(lines) > LONG_LINES or len(text) > LONG_CHARS:
            with st.expander(words("page.pasted", lines=len(lines))):
                cards.show_command(text)
        else:
            markup.show(chat_reply.lines_html(text))


def show_reply(reply: Reply, words: Words, following: str | None) -> None:
    """A reply: statements, commands, changes, sources, and what was offered to say next.

    Of the last one these are buttons; of any other the one chosen by the message `following` it is
    marked.
    """
    last = following is None
    numbers = chat_reply.number_sources(reply.statements)
    chat_reply.show_statements(reply.statements, numbers, reply.changes)
    if last:
        chat_model.show_place(words)
    if not any(statement.role == "change" for statement in reply.statements):
        markup.show(chat_reply.changes_html(reply.changes, words))
    markup.show(chat_reply.sources_html(numbers, words))
    if reply.question is not None:
        _question(reply.question, following)
    if following is not None:
        markup.show(chat_reply.offered_html(reply.suggestions, following))
        return
    with st.container(horizontal=True):
        for number, text in enumerate(reply.suggestions):
            _button(text, text, key=f"chat_suggestion_{number}")


def _question(question: Question, following: str | None) -> None:
    markup.show(html("<p><b>{text}</b></p>", text=question.text))
    if question.command:
        cards.show_command(question.command)
    if following is not None:
        offered = [f"{option.number}. {option.text}" for option in question.options]
        chosen = next((o for o in offered if o.partition(".")[0] == following.strip()), "")
        markup.show(chat_reply.offered_html(offered, chosen))
        return
    with st.container(horizontal=True):
        for option in question.options:
            label = f"{option.number}. {option.text}"
            _button(label, str(option.number), key=f"chat_option_{option.number}")


def _button(label: str, message: str, *, key: str) -> None:
    """A button that sends `message`; labels are Markdown to Streamlit, so the text is escaped."""
    st.button(md_text(label), key=key, on_click=actions.queue, args=(MESSAGE, (message, [])))


def _typed() -> None:
    typed = st.session_state[INPUT]
    actions.queue(MESSAGE, (typed.text, typed.files))


# --- the next message --------------------------------------------------------------------------


def _answer(message: actions.PendingWork, known: Conversation | None, words: Words) -> Reply | None:
    """Have a message answered, files as one incident; its turn is drawn in the next run."""
    text, files = message.value or ("", [])
    if not files and not text.strip():
        return None
    if not files:
        _show_message(text, words)
    options: dict[str, Any] = {
        "conversation": _conversation_id(known),
        "language": requested_language(text, known),
        "create": known is None,
    }
    try:
        with st.chat_message("assistant"), st.spinner(words("page.thinking")):
            if files:
                uploads = [(file.name, file) for file in files]
                with uploaded(text, uploads, service().settings) as paths:
                    reply = chat().begin(service().read_paths(paths), **options)
            else:
                reply = chat().say(text, **options)
            message.value = None  # its turn is stored: answered again there would be two
            return reply
    except KBError as error:
        actions.post(MESSAGE, error)
        return None


def _conversation_id(known: Conversation | None) -> str:
    """The id to talk under, remembered before anything is stored under it."""
    if known is not None:
        return known.id
    return str(st.session_state.setdefault(STARTED, secrets.token_urlsafe(ID_BYTES)))


def _redraw(reply: Reply) -> None:
    """Draw the conversation anew, under its address."""
    st.session_state[LAST_LANGUAGE] = language()
    chat_model.ask_model(chat().conversation(reply.conversation))
    st.session_state.get(JUDGED, set()).discard(reply.conversation)
    _name(reply.conversation)
    st.rerun()


def requested_language(message: str, known: Conversation | None) -> Language | None:
    """The language to ask the reply in, or None to leave it to the person's own words.

    The switch counts when it was moved since the last message, and where a first message is a
    log, which is in nobody's language.
    """
    if known is not None and known.turns:
        before = st.session_state.get(LAST_LANGUAGE, language())
        return language() if before != language() else None
    log = "\n" in message.strip() or len(message) > LONG_CHARS or not message.strip()
    return language() if log else None


# --- was it right? -----------------------------------------------------------------------------


def _feedback(known: Conversation, words: Words) -> None:
    """Buttons below the last answer: to keep how it ended, or to judge the cause named."""
    ended = known.turns[-1].reply.outcome
    cause = chat_reply.judged_cause(known.turns)
    if not (ended or cause) or known.reading is None:
        return
    judged: set[str] = st.session_state.setdefault(JUDGED, set())
    if known.id in judged:
        markup.show(markup.faint(words("page.thanks")))
        return
    if ended is not None:
        label = "page.keep_right" if ended.verdict == "right" else "page.keep_wrong"
        keep = partial(_judge, ended, known.id, judged)
        actions.button(words(label), keep, key="chat_keep", words=words)
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        title = service().knowledge.cause_by_id[cause].title.get(words.language)
        markup.show(markup.faint(words("page.chat_feedback", title=plain(title))))
        right = partial(_judge, IncidentOutcome(verdict="right", cause=cause), known.id, judged)
        actions.button(words("page.right"), right, key="chat_right", words=words)
        with st.popover(words("page.wrong")):
            cause_choice(words, "page.actual", key=ACTUAL)
            wrong = partial(_deny, cause, known.id, judged)
            actions.button(words("page.send"), wrong, key="chat_wrong", words=words)


def _deny(cause: str, conversation: str, judged: set[str]) -> None:
    actual = str(st.session_state.get(ACTUAL) or "")
    _judge(IncidentOutcome(verdict="wrong", cause=cause, actual=actual), conversation, judged)


def _judge(ended: IncidentOutcome, conversation: str, judged: set[str]) -> None:
    from app.inputs.contributions import Feedback, add_feedback

    feedback = Feedback(
        verdict=ended.verdict, cause=ended.cause, actual=ended.actual, diagnosis=conversation
    )
    add_feedback(service(), feedback, source="web", by=f"{person()} {conversation}")
    judged.add(conversation)
