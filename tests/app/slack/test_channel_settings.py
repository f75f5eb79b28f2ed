"""What a channel may set: auto-diagnose, quiet, ephemeral; off until somebody turns it on."""

from __future__ import annotations

from kb.text.language import has_han
from tests.app.slack.conftest import tells_oom
from tests.app.slack.fake import samples
from tests.app.slack.fake.fake_slack import FakeSlack
from tests.app.slack.fake.installation import answered, finished
from tests.app.slack.fake.workspace import Channel, Message


def set_up(slack: FakeSlack, channel: Channel, *settings: str) -> None:
    """Change settings of a channel, one command each."""
    for setting in settings:
        slack.run_command(channel, f"settings {setting}")


def nothing_said_of(slack: FakeSlack, channel: Channel, *messages: Message) -> None:
    """None of the messages was answered, though a later one was."""
    marker = slack.say(channel, "help", mention=True)
    finished(slack, marker)
    for message in messages:
        assert slack.answers(channel, message) == []
        assert message.reacted == []


def test_logs_nobody_asked_about_are_left_alone(slack: FakeSlack, channel: Channel) -> None:
    """By default the bot says nothing to a log in a channel."""
    nothing_said_of(slack, channel, slack.say(channel, samples.english_log()))


def test_auto_diagnose_answers_logs_and_nothing_else(slack: FakeSlack, channel: Channel) -> None:
    """Turned on, a timeout gets one answer in its thread; talk and other logs get none."""
    set_up(slack, channel, "auto on")
    talk = slack.say(channel, "lunch?")
    about = slack.say(channel, "the build takes a while today, did anyone change the image")
    log = slack.say(channel, samples.english_log())
    answer = slack.answer(channel, log)
    slack.until(lambda: answer.blocks, what="blocks")
    assert tells_oom(answer.shown)
    nothing_said_of(slack, channel, talk, about)
    assert len(slack.answers(channel, log)) == 1


def test_a_quiet_channel_hears_only_what_is_known(slack: FakeSlack, channel: Channel) -> None:
    """Quiet: an undecided log gets a mark and no message, a decided one its answer."""
    set_up(slack, channel, "quiet on")
    unsure = slack.say(channel, samples.undecided_log(), mention=True)
    assert finished(slack, unsure) == "grey_question"
    assert slack.answers(channel, unsure) == []
    sure = slack.say(channel, samples.english_log(), mention=True)
    assert tells_oom(answered(slack, channel, sure).shown)


def test_quiet_and_auto_together_leave_no_trace(slack: FakeSlack, channel: Channel) -> None:
    """A log nobody asked about that the evidence does not decide gets neither word nor mark."""
    set_up(slack, channel, "auto on", "quiet on")
    unsure = slack.say(channel, samples.undecided_log())
    sure = slack.say(channel, samples.english_log())
    assert tells_oom(slack.answer(channel, sure).shown)
    nothing_said_of(slack, channel, unsure)


def test_ephemeral_answers_are_for_the_person_who_asked(slack: FakeSlack, channel: Channel) -> None:
    """Ephemeral: only the one who asked sees the answer, and nothing else is posted.

    It stands in the channel: Slack shows such a message in a thread only once that has begun.
    """
    set_up(slack, channel, "ephemeral on")
    asked = slack.say(channel, samples.english_log(), mention=True, user="ben")
    finished(slack, asked)
    assert all(message.ephemeral_for for message in slack.answers(channel))
    answers = [message for message in slack.answers(channel) if message.via == "chat.postEphemeral"]
    ben = slack.add_user(channel, "ben").id
    assert [(message.ephemeral_for, message.thread_ts) for message in answers] == [(ben, "")]
    assert tells_oom(answers[0].shown)


def test_a_click_on_an_ephemeral_answer_stays_between_two(
    slack: FakeSlack, channel: Channel
) -> None:
    """What a button of such an answer brings is seen by the same person alone."""
    set_up(slack, channel, "ephemeral on")
    asked = slack.say(channel, samples.english_log(), mention=True, user="ben")
    assert finished(slack, asked) == "white_check_mark"
    (answer,) = [item for item in slack.answers(channel) if item.via == "chat.postEphemeral"]
    for action in ("fixes", "right"):
        made = slack.press(channel, answer, action, user="ben")
        assert made.ephemeral_for == slack.add_user(channel, "ben").id


def test_settings_outlive_a_language(slack: FakeSlack, channel: Channel) -> None:
    """A set language holds for mentions too, whatever the log speaks."""
    set_up(slack, channel, "language zh")
    asked = slack.say(channel, samples.english_log(), mention=True)
    shown = answered(slack, channel, asked).shown
    assert tells_oom(shown)
    assert has_han(shown)
