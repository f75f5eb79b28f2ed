"""Text of others: it calls nobody, links nowhere, formats nothing, and its secrets stay hidden.

That nothing mentions or links is checked after every test of the shared bot (see `office`); here
the text is put wherever people and logs can put it, and has to show.
"""

from __future__ import annotations

from kb.service import Service
from tests.slack import samples
from tests.slack.bot import Bot
from tests.slack.calls import strings
from tests.slack.fake_slack import FakeSlack
from tests.slack.harmless import links, mentions
from tests.slack.office import Office, answered, finished
from tests.slack.workspace import Channel, Message, Workspace

SHOUT = "<!channel>"


def text_of(message: Message) -> str:
    """All strings of a message's blocks."""
    return "\n".join(strings(message.blocks))


def check_nothing_leaked(slack: FakeSlack, bot: Bot) -> None:
    """No secret of a log is posted, logged or kept."""
    posted = list(strings([payload for _, payload in slack.spoken()]))
    kept = [path.read_bytes() for path in bot.home.rglob("*") if path.is_file()]
    for secret in samples.SECRETS:
        assert not [text for text in posted if secret in text]
        assert secret not in bot.said
        assert not [body for body in kept if secret.encode() in body]


def check_harmless(message: Message) -> None:
    """The hostile text stands in a message as its letters, and does nothing."""
    payload = {"text": message.text, "blocks": message.blocks}
    assert SHOUT in text_of(message)
    assert mentions(payload) == []
    assert not [link for link in links(payload) if samples.EVIL_HOST in link]


def test_a_quoted_line_is_letters_only(office: Office, channel: Channel) -> None:
    """The line that decides is quoted with all its markup, as text; its token is hidden."""
    slack = office.slack
    asked = slack.say(channel, samples.hostile_log(), mention=True)
    answer = answered(slack, channel, asked)
    check_harmless(answer)
    assert "redacted" in text_of(answer)
    assert "OutOfMemoryError" not in office.bot.said  # nor anything else of what people paste
    check_nothing_leaked(slack, office.bot)


def test_follow_ups_and_buttons_quote_it_as_text(office: Office, channel: Channel) -> None:
    """Everything said later of such a log is as harmless."""
    slack = office.slack
    asked = slack.say(channel, samples.hostile_log(), mention=True)
    answer = answered(slack, channel, asked)
    for action in ("fixes", "cases", "next_check"):
        number = len(slack.answers(channel, asked)) + 1
        slack.click(channel, answer, action)
        slack.answer(channel, asked, number=number)
    for question in ("why?", "what happened?", f"why {SHOUT} http://{samples.EVIL_HOST}/?"):
        assert finished(slack, slack.say(channel, question, thread=asked)) == "white_check_mark"
    said = "\n".join(text_of(message) for message in slack.answers(channel, asked)[4:])
    assert SHOUT in said
    check_nothing_leaked(slack, office.bot)


def test_an_ephemeral_answer_is_as_harmless(office: Office, channel: Channel) -> None:
    """What goes through a command's own address is held to the same."""
    slack = office.slack
    slack.slash(channel, "settings ephemeral on")
    slack.answer(channel)
    slack.slash(channel, samples.hostile_log())

    def found() -> list[Message]:
        return [item for item in slack.answers(channel) if SHOUT in text_of(item)]

    (answer,) = slack.until(found, what="answer")
    check_harmless(answer)
    check_nothing_leaked(slack, office.bot)


def test_an_incident_made_of_it_is_shown_as_text(
    office: Office, channel: Channel, web: Service
) -> None:
    """An entry from a hostile log is harmless when it is searched and shown."""
    slack, alpha = office.slack, office.alpha
    mark = "quokkanet7"
    log = samples.hostile_log().replace(":fire:", mark)
    answer = answered(slack, channel, slack.say(channel, log, mention=True))
    views = len(alpha.views)
    slack.click(channel, answer, "incident")
    view = slack.view(alpha, after=views)
    before = set(web.store.ids())
    number = len(slack.answers(channel)) + 1
    fix = f"{SHOUT} see http://{samples.EVIL_HOST}/fix with {samples.GITHUB_TOKEN}"
    slack.submit(alpha, view, {"cause": "rank-crash", "fix": fix}, user="ann")
    slack.answer(channel, number=number)
    (entry_id,) = set(web.store.ids()) - before
    for command in (f"case {entry_id}", f"search {mark} out of memory"):
        number = len(slack.answers(channel)) + 1
        slack.slash(channel, command)
        shown = slack.answer(channel, number=number)
        assert entry_id in text_of(shown) or SHOUT in text_of(shown)
        if command.startswith("case"):
            check_harmless(shown)
    check_nothing_leaked(slack, office.bot)


def test_what_was_typed_is_echoed_as_text(slack: FakeSlack, channel: Channel) -> None:
    """A wrong id, a wrong setting and a query come back as letters."""
    for command in (f"case {SHOUT}", f"settings {SHOUT} on"):
        number = len(slack.answers(channel)) + 1
        slack.slash(channel, command)
        check_harmless(slack.answer(channel, number=number))


def test_a_file_name_is_shown_as_text(slack: FakeSlack, alpha: Workspace, channel: Channel) -> None:
    """A file called like a call to everybody is named in the answer, and calls nobody."""
    ann = alpha.add_user("ann").id
    name = f"{SHOUT} *b* http:..{samples.EVIL_HOST}.log"
    gone = alpha.add_file(name, b"x", user=ann, behaviour="gone")
    asked = slack.say(channel, "", mention=True, files=[gone])
    assert finished(slack, asked) == "warning"
    (answer,) = slack.answers(channel, asked)
    check_harmless(answer)
    log = alpha.add_file(f"../../{name}", samples.english_log().encode(), user=ann)
    picture = alpha.add_file(f"{SHOUT}.png", b"x", user=ann, mimetype="image/png")
    check_harmless(
        answered(slack, channel, slack.say(channel, "", mention=True, files=[log, picture]))
    )
