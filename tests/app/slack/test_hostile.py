"""Text of others: it calls nobody, links nowhere, formats nothing, and its secrets stay hidden.

That nothing mentions or links is checked after every test of the shared bot (see `installation`);
here the text is put wherever people and logs can put it, and has to show.
"""

from __future__ import annotations

from kb.service import Service
from tests.app.slack.fake import samples
from tests.app.slack.fake.fake_slack import FakeSlack
from tests.app.slack.fake.harmless import links, mentions, strings
from tests.app.slack.fake.installation import BotProcess, Installation, answered, finished
from tests.app.slack.fake.workspace import Channel, Message, Workspace

SHOUT = "<!channel>"


def check_nothing_leaked(slack: FakeSlack, bot: BotProcess) -> None:
    """No secret of a log is posted, logged or kept."""
    posted = list(strings([payload for _, payload in slack.visible()]))
    stored = [path.read_bytes() for path in bot.home.rglob("*") if path.is_file()]
    for secret in samples.SECRETS:
        assert not [text for text in posted if secret in text]
        assert secret not in bot.output
        assert not [body for body in stored if secret.encode() in body]


def check_harmless(message: Message) -> None:
    """The hostile text stands in a message as its letters, and does nothing."""
    payload = {"text": message.text, "blocks": message.blocks}
    assert SHOUT in message.shown
    assert mentions(payload) == []
    assert not [link for link in links(payload) if samples.EVIL_HOST in link]


def test_a_quoted_line_is_letters_only(installation: Installation, channel: Channel) -> None:
    """The line that decides is quoted with all its markup, as text; its token is hidden."""
    slack = installation.slack
    asked = slack.say(channel, samples.hostile_log(), mention=True)
    answer = answered(slack, channel, asked)
    check_harmless(answer)
    assert "redacted" in answer.shown
    assert "OutOfMemoryError" not in installation.bot.output  # nor other pasted text
    check_nothing_leaked(slack, installation.bot)


def test_follow_ups_and_buttons_quote_it_as_text(
    installation: Installation, channel: Channel
) -> None:
    """Everything said later of such a log is as harmless."""
    slack = installation.slack
    asked = slack.say(channel, samples.hostile_log(), mention=True)
    answer = answered(slack, channel, asked)
    for action in ("fixes", "cases", "next_check"):
        slack.press(channel, answer, action)
    for question in ("why?", "what happened?", f"why {SHOUT} http://{samples.EVIL_HOST}/?"):
        assert finished(slack, slack.say(channel, question, thread=asked)) == "white_check_mark"
    shown = "\n".join(message.shown for message in slack.answers(channel, asked)[4:])
    assert SHOUT in shown
    check_nothing_leaked(slack, installation.bot)


def test_an_ephemeral_answer_is_as_harmless(installation: Installation, channel: Channel) -> None:
    """What goes through a command's own address is held to the same."""
    slack = installation.slack
    slack.run_command(channel, "settings ephemeral on")
    slack.slash(channel, samples.hostile_log())

    def found() -> list[Message]:
        return [item for item in slack.answers(channel) if SHOUT in item.shown]

    (answer,) = slack.until(found, what="answer")
    check_harmless(answer)
    check_nothing_leaked(slack, installation.bot)


def test_an_incident_made_of_it_is_shown_as_text(
    installation: Installation, channel: Channel, web: Service
) -> None:
    """An entry from a hostile log is harmless when it is searched and shown."""
    slack = installation.slack
    mark = "quokkanet7"
    log = samples.hostile_log().replace(":fire:", mark)
    answer = answered(slack, channel, slack.say(channel, log, mention=True))
    before = set(web.store.ids())
    fix = f"{SHOUT} see http://{samples.EVIL_HOST}/fix with {samples.GITHUB_TOKEN}"
    slack.fill_in(channel, answer, {"cause": "rank-crash", "fix": fix})
    (entry_id,) = set(web.store.ids()) - before
    for command in (f"case {entry_id}", f"search {mark} out of memory"):
        shown = slack.run_command(channel, command)
        assert entry_id in shown.shown or SHOUT in shown.shown
        if command.startswith("case"):
            check_harmless(shown)
    check_nothing_leaked(slack, installation.bot)


def test_what_was_typed_is_echoed_as_text(slack: FakeSlack, channel: Channel) -> None:
    """A wrong id, a wrong setting and a query come back as letters."""
    for command in (f"case {SHOUT}", f"settings {SHOUT} on"):
        check_harmless(slack.run_command(channel, command))


def test_a_file_name_is_shown_as_text(slack: FakeSlack, alpha: Workspace, channel: Channel) -> None:
    """A file called like a call to everybody is named in the answer, and calls nobody."""
    name = f"{SHOUT} *b* http:..{samples.EVIL_HOST}.log"
    gone = alpha.add_file(name, b"x", behaviour="gone")
    asked = slack.say(channel, "", mention=True, files=[gone])
    assert finished(slack, asked) == "warning"
    (answer,) = slack.answers(channel, asked)
    check_harmless(answer)
    log = alpha.add_file(f"../../{name}", samples.english_log().encode())
    picture = alpha.add_file(f"{SHOUT}.png", b"x", mimetype="image/png")
    check_harmless(
        answered(slack, channel, slack.say(channel, "", mention=True, files=[log, picture]))
    )
