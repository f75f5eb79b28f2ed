"""Mentions, direct messages and threads: one complete answer each, the same as anywhere else."""

from __future__ import annotations

import pytest

from app.inputs.contributions import delete
from app.render import present
from kb.knowledge.labels import Words
from kb.service import Service
from kb.text.language import has_han
from kb.types.answer import Diagnosis
from tests.app.slack.fake import samples
from tests.app.slack.fake.fake_slack import FakeSlack
from tests.app.slack.fake.harmless import links
from tests.app.slack.fake.installation import answered, finished
from tests.app.slack.fake.workspace import Channel, Message, Workspace

HEADER = 140  # characters of a verdict that stand in the header whatever Slack's limit cuts
LOGS = {"en": samples.english_log, "zh": samples.chinese_log}


@pytest.fixture(autouse=True, scope="module")
def met_nothing(web: Service) -> None:
    """The team has no incidents: what other tests added would be met, under the same headline."""
    for record in web.incidents():
        delete(web, record.id, for_good=True)


def check_same(message: Message, diagnosis: Diagnosis, service: Service) -> None:
    """The message names verdict, causes, evidence and first fix of the diagnosis, in its order."""
    words = Words(service.knowledge.labels, diagnosis.language)
    shown = message.shown
    assert message.blocks[0]["type"] == "header"
    assert diagnosis.headline.startswith(message.blocks[0]["text"]["text"].rstrip("…"))
    titles = [
        f"{number}. {cause.title}"
        for number, cause in enumerate(diagnosis.causes, 1)
        if not present.is_faint(cause)
    ]
    places = [shown.find(title) for title in titles]
    assert -1 not in places
    assert places == sorted(places)
    error = diagnosis.incident.first_error
    assert shown.count(diagnosis.headline) == 1
    assert error is None or error.text[:100] in shown
    assert present.evidence_place(diagnosis.causes[0].evidence[0], words) in shown
    assert diagnosis.causes[0].fixes[0].title in shown
    for case in diagnosis.cases[:3]:
        assert case.url in links({"text": "", "blocks": message.blocks})


@pytest.mark.parametrize("language", LOGS)
def test_a_mention_with_a_log_gets_the_diagnosis_in_its_language(
    slack: FakeSlack, channel: Channel, reference: Service, language: str
) -> None:
    """One message in the thread says what every other face says, in the language of the paste."""
    log = LOGS[language]()
    asked = slack.say(channel, log, mention=True)
    answer = answered(slack, channel, asked)
    diagnosis = reference.diagnose_text(log)
    assert diagnosis.language == language
    check_same(answer, diagnosis, reference)
    assert answer.thread_ts == asked.ts
    assert asked.reacted == ["eyes", "white_check_mark"]
    assert asked.reactions["eyes"] == set()


def test_a_direct_message_needs_no_mention(
    slack: FakeSlack, direct: Channel, reference: Service
) -> None:
    """In a direct conversation every message is answered, beside it and not in a thread."""
    log = samples.english_log()
    asked = slack.say(direct, log)
    finished(slack, asked)
    (answer,) = slack.answers(direct)
    check_same(answer, reference.diagnose_text(log), reference)
    assert answer.thread_ts == ""


def test_a_private_channel_is_served_alike(slack: FakeSlack, alpha: Workspace) -> None:
    """In a private channel a mention and a follow-up without one are answered."""
    channel = alpha.add_channel("secret", kind="group")
    root = slack.say(channel, samples.english_log(), mention=True)
    answered(slack, channel, root)
    assert finished(slack, slack.say(channel, "why?", thread=root)) == "white_check_mark"
    assert len(slack.answers(channel, root)) == 2


def test_a_code_block_is_read_as_its_lines(
    slack: FakeSlack, channel: Channel, reference: Service
) -> None:
    """The marks of a code block are not part of the log; its lines keep their numbers."""
    log = samples.english_log()
    asked = slack.say(channel, f"please help\n```\n{log}\n```", mention=True)
    answer = answered(slack, channel, asked)
    check_same(answer, reference.diagnose_text(f"please help\n\n{log}"), reference)
    assert "```" not in answer.shown


def test_ten_messages_of_a_thread_keep_the_incident(
    slack: FakeSlack, channel: Channel, reference: Service
) -> None:
    """Follow-ups need no mention; after nine of them the thread still speaks of its first log."""
    log = samples.english_log()
    root = slack.say(channel, log, mention=True)
    answered(slack, channel, root)
    title = reference.diagnose_text(log).causes[0].title
    questions = [
        "why?",
        "how do I fix it?",
        "does a restart help?",
        "which rank was first?",
        "how sure are you?",
        "what should I collect next?",
        "show me similar cases",
        "thanks",
        "what happened?",
    ]
    for number, question in enumerate(questions, start=2):
        asked = slack.say(channel, question, thread=root, user="ben" if number % 2 else "ann")
        assert finished(slack, asked) == "white_check_mark", question
        assert len(slack.answers(channel, root)) == number
    answers = slack.answers(channel, root)
    assert title in answers[1].shown
    assert "5" in answers[4].shown
    last = answers[-1].shown
    assert "rank 5" in last.lower() or title in last


def test_a_thread_the_bot_is_not_in_is_left_alone(slack: FakeSlack, channel: Channel) -> None:
    """Without a mention the bot stays out of other people's threads and channels."""
    root = slack.say(channel, samples.english_log())
    slack.say(channel, "why does it hang?", thread=root)
    ours = slack.say(channel, "help", mention=True)
    finished(slack, ours)
    assert slack.answers(channel, root) == []
    assert len(slack.answers(channel)) == 1


def test_a_paste_of_39_000_characters(
    slack: FakeSlack, channel: Channel, reference: Service
) -> None:
    """The longest paste Slack takes is read to its end."""
    log = samples.long_log(39_000)
    asked = slack.say(channel, log, mention=True)
    answer = answered(slack, channel, asked)
    diagnosis = reference.diagnose_text(log)
    assert diagnosis.causes[0].id == "rank-crash"
    check_same(answer, diagnosis, reference)


def test_an_empty_mention_in_a_thread_asks_about_its_first_message(
    slack: FakeSlack, channel: Channel, reference: Service
) -> None:
    """Calling the bot under somebody's log diagnoses that log."""
    log = samples.english_log()
    root = slack.say(channel, log, user="ben")
    asked = slack.say(channel, "", mention=True, thread=root)
    finished(slack, asked)
    (answer,) = slack.answers(channel, root)
    check_same(answer, reference.diagnose_text(log), reference)


def test_words_without_a_log_get_an_answer(slack: FakeSlack, channel: Channel) -> None:
    """A greeting, a setting and nonsense are answered in words, in the language they came in."""
    for text, zh in (
        ("what does NCCL_TIMEOUT do?", False),
        ("NCCL_TIMEOUT 有用吗？", True),
        ("asdf qwer", False),
    ):
        asked = slack.say(channel, text, mention=True)
        answer = answered(slack, channel, asked)
        shown = answer.shown
        assert has_han(shown) is zh, shown
