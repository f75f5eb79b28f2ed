"""The chat page: a log or a question in, an answer with its sources, the next question back."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial

import streamlit as st
from markupsafe import Markup

from app.labels import Words
from app.quoting import md_text, plain
from app.web import cards, markup, outcome, press, said
from app.web.markup import html
from app.web.parts import LANG, chat, language, parameter, service, words
from kb.chat.conversations import ID_BYTES, by_link
from kb.chat.types import Conversation, Outcome, Question, Reply, Statement
from kb.errors import KBError, NotFoundError
from kb.types import Language

CONVERSATION = "c"  # its id in the address
INPUT = "chat_input"
MESSAGE = "chat_message"  # wished for: a text and files to be answered
BEGUN = "chat_begun"  # id of the conversation begun here, until the address has it
SPOKE = "chat_spoke"  # language of the interface at the last message
JUDGED = "chat_judged"  # conversations whose last verdict was judged in this visit
ACTUAL = "chat_actual"  # the cause chosen in its place
LONG_LINES, LONG_CHARS = 6, 500  # of a message that is shown folded
EXAMPLES = ("page.chat_example_log", "page.chat_example_setting", "page.chat_example_words")


def page() -> None:
    """Show the conversation and take the next message."""
    spoken = words()
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        markup.show(markup.heading(spoken("page.chat"), level=1))
        st.button(spoken("page.new_conversation"), key="chat_new", on_click=_leave)
    try:
        known = _known()
    except NotFoundError:
        _expired(spoken)
        return
    if known is None or not known.turns:
        _welcome(spoken)
    else:
        _turns(known, spoken)
    st.chat_input(spoken("page.chat_hint"), key=INPUT, accept_file="multiple", on_submit=_typed)
    with press.fulfil(MESSAGE) as message:
        reply = _answer(message, known, spoken)
    press.told(MESSAGE, spoken)
    if reply is not None:
        _go_on(reply)
    if press.wished(MESSAGE):
        st.rerun()  # for the next message, though this one failed


def _known() -> Conversation | None:
    """The conversation in the address, else the one begun here; None where neither is kept.

    A run that is ended while it answers a first message does not come to naming the conversation.

    Raises:
        NotFoundError: that in the address is unknown or has expired.
    """
    if identifier := parameter(CONVERSATION):
        st.session_state.pop(BEGUN, None)
        return chat().conversation(by_link(identifier))
    try:
        known = chat().conversation(st.session_state.get(BEGUN, ""))
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
    st.session_state.pop(BEGUN, None)
    press.unwish(MESSAGE)


def _expired(spoken: Words) -> None:
    days = service().settings.chat_days
    markup.show(
        html(
            '<div class="tk-note tk-possible" role="alert">{text}</div>',
            text=spoken("page.conversation_gone", days=days),
        )
    )


def _welcome(spoken: Words) -> None:
    markup.show(html("<p>{text}</p>", text=spoken("page.chat_lead")))
    with st.container(horizontal=True):
        for name in EXAMPLES:
            _button(spoken(name), spoken(name), key=name)


# --- what was said so far ----------------------------------------------------------------------


def _turns(known: Conversation, spoken: Words) -> None:
    for at, turn in enumerate(known.turns):
        _asked(said.asked_text(known.turns, at), spoken)
        with st.chat_message("assistant"):
            show_reply(turn.reply, spoken, last=turn is known.turns[-1])
    _feedback(known, spoken)


def _asked(text: str, spoken: Words) -> None:
    with st.chat_message("user"):
        lines = text.splitlines()
        if not text.strip():
            markup.show(html('<p class="tk-faint">{text}</p>', text=spoken("page.files_given")))
        elif len(lines) > LONG_LINES or len(text) > LONG_CHARS:
            with st.expander(spoken("page.pasted", lines=len(lines))):
                cards.show_command(text)
        else:
            markup.show(
                markup.join((markup.safe(line) for line in lines if line.strip()), Markup("<br>"))
            )


def show_reply(reply: Reply, spoken: Words, *, last: bool) -> None:
    """A reply: statements, commands, changes, sources; with buttons only where it is the last."""
    cited, citations = said.numbered(reply.statements)
    for run in said.runs(cited):
        markup.show(said.statements_html(run, reply.changes))
        if run[-1].statement.command:
            cards.show_command(run[-1].statement.command)
    if not any(statement.role == "change" for statement in reply.statements):
        markup.show(said.changes_html(reply.changes, spoken))
    markup.show(said.sources_html(citations, spoken))
    if reply.source == "model":
        markup.show(html('<p class="tk-faint">{text}</p>', text=spoken("page.by_model")))
    if reply.question is not None:
        _question(reply.question, last=last)
    if last:
        with st.container(horizontal=True):
            for number, text in enumerate(reply.suggestions):
                _button(text, text, key=f"chat_suggestion_{number}")


def _question(question: Question, *, last: bool) -> None:
    markup.show(said.question_html(question))
    if question.command:
        cards.show_command(question.command)
    if not last:
        markup.show(said.options_html(question))
        return
    with st.container(horizontal=True):
        for option in question.options:
            label = f"{option.number}. {option.text}"
            _button(label, str(option.number), key=f"chat_option_{option.number}")


def _button(label: str, message: str, *, key: str) -> None:
    """A button that says `message`; labels are Markdown to Streamlit, so the text is escaped."""
    st.button(md_text(label), key=key, on_click=_press, args=(message,))


def _press(message: str) -> None:
    press.wish_too(MESSAGE, (message, []))


def _typed() -> None:
    typed = st.session_state[INPUT]
    press.wish_too(MESSAGE, (typed.text, typed.files))


# --- the next message --------------------------------------------------------------------------


def _answer(message: press.Wish, known: Conversation | None, spoken: Words) -> Reply | None:
    """The answer to a message with or without files; None where there is none."""
    text, files = message.value or ("", [])
    if files:
        return _read(text, [(file.name, file) for file in files], message, known, spoken)
    if not text.strip():
        return None
    return _send(text, message, known, spoken)


def _read(
    text: str,
    uploads: Sequence[outcome.Upload],
    message: press.Wish,
    known: Conversation | None,
    spoken: Words,
) -> Reply | None:
    """Files, with the words written beside them, as one incident."""
    begun = _begun(known)
    try:
        with st.spinner(spoken("page.reading")):
            found = outcome.read(service(), text=text, uploads=uploads, language=language())
            reply = chat().begin(
                found.reading,
                conversation=begun,
                language=wanted(text, known),
                create=known is None,
            )
            message.value = None  # the turn is kept: read again there would be two
            return reply
    except KBError as error:
        press.say(MESSAGE, error)
        return None


def _send(
    text: str, message: press.Wish, known: Conversation | None, spoken: Words
) -> Reply | None:
    """Say something and show the answer as it comes; the kept turn is drawn after it."""
    _asked(text, spoken)
    begun = _begun(known)
    reply: Reply | None = None
    with st.chat_message("assistant"):
        try:
            items = chat().stream(
                text, conversation=begun, language=wanted(text, known), create=known is None
            )
            with st.spinner(spoken("page.thinking")):
                for item in items:
                    message.value = None  # its turn is kept: asked again it would be two
                    if isinstance(item, Statement):
                        _statement(item)
                    else:
                        reply = item
        except KBError as error:
            press.say(MESSAGE, error)
    return reply


def _begun(known: Conversation | None) -> str:
    """The id to talk under, remembered before anything is kept under it."""
    if known is not None:
        return known.id
    return str(st.session_state.setdefault(BEGUN, secrets.token_urlsafe(ID_BYTES)))


def _statement(statement: Statement) -> None:
    markup.show(said.statements_html([said.Cited(statement=statement, numbers=())]))
    if statement.command:
        cards.show_command(statement.command)


def _go_on(reply: Reply) -> None:
    """Draw the conversation anew, under its address."""
    st.session_state[SPOKE] = language()
    st.session_state.get(JUDGED, set()).discard(reply.conversation)
    _name(reply.conversation)
    st.rerun()


def wanted(message: str, known: Conversation | None) -> Language | None:
    """The language to ask the reply in, or None to leave it to the person's own words.

    The switch counts when it was moved since the last message, and where a first message is a
    log, which is in nobody's language.
    """
    if known is not None and known.turns:
        before = st.session_state.get(SPOKE, language())
        return language() if before != language() else None
    log = "\n" in message.strip() or len(message) > LONG_CHARS or not message.strip()
    return language() if log else None


# --- was it right? -----------------------------------------------------------------------------


def _feedback(known: Conversation, spoken: Words) -> None:
    """Buttons below the last answer: to keep how it ended, or to judge the cause named."""
    ended = known.turns[-1].reply.outcome
    cause = said.named_cause(known.turns)
    if not (ended or cause) or known.reading is None:
        return
    judged: set[str] = st.session_state.setdefault(JUDGED, set())
    if known.id in judged:
        markup.show(html('<p class="tk-faint">{text}</p>', text=spoken("page.thanks")))
        return
    if ended is not None:
        label = "page.keep_right" if ended.verdict == "right" else "page.keep_wrong"
        keep = partial(_judge, ended, known.id, judged)
        press.button(spoken(label), keep, key="chat_keep", words=spoken)
        return
    causes = service().knowledge.cause_by_id
    with st.container(horizontal=True, vertical_alignment="center"):
        title = causes[cause].title.get(spoken.language)
        text = spoken("page.chat_feedback", title=plain(title))
        markup.show(html('<p class="tk-faint">{text}</p>', text=text))
        right = partial(_judge, Outcome(verdict="right", cause=cause), known.id, judged)
        press.button(spoken("page.right"), right, key="chat_right", words=spoken)
        with st.popover(spoken("page.wrong")):
            st.selectbox(
                spoken("page.actual"),
                list(causes),
                index=None,
                format_func=lambda name: plain(causes[name].title.get(spoken.language)),
                placeholder=spoken("page.choose"),
                key=ACTUAL,
            )
            wrong = partial(_deny, cause, known.id, judged)
            press.button(spoken("page.send"), wrong, key="chat_wrong", words=spoken)


def _deny(cause: str, conversation: str, judged: set[str]) -> None:
    actual = str(st.session_state.get(ACTUAL) or "")
    _judge(Outcome(verdict="wrong", cause=cause, actual=actual), conversation, judged)


def _judge(ended: Outcome, conversation: str, judged: set[str]) -> None:
    from app.contribute import Feedback, add_feedback

    judgement = Feedback(
        verdict=ended.verdict, cause=ended.cause, actual=ended.actual, diagnosis=conversation
    )
    add_feedback(service(), judgement, source="web")
    judged.add(conversation)
