"""Buttons, the menu, the form and the shortcut: each does its work once, in the shared store."""

from __future__ import annotations

import pytest

from app.inputs.contributions import read_feedback
from app.slack.blocks.diagnosis import FIXES
from app.slack.requests import DiagnosisRef
from kb.saved import load_diagnosis
from kb.service import Service
from tests.app.slack.fake import samples
from tests.app.slack.fake.fake_slack import FakeSlack, find_element
from tests.app.slack.fake.installation import answered, finished
from tests.app.slack.fake.workspace import Channel, Message, Workspace


@pytest.fixture
def answer(slack: FakeSlack, channel: Channel) -> Message:
    """A diagnosis in a channel."""
    return answered(slack, channel, slack.say(channel, samples.english_log(), mention=True))


def test_this_was_it_is_kept_as_feedback(
    slack: FakeSlack, channel: Channel, answer: Message, web: Service
) -> None:
    """One press, one entry in the store the page reads, about the kept diagnosis."""
    before = len(read_feedback(web))
    thanks = slack.press(channel, answer, "right", user="ben")
    assert thanks.ephemeral_for == slack.add_user(channel, "ben").id
    new = read_feedback(web)[before:]
    assert [(item.feedback.verdict, item.feedback.cause, item.source) for item in new] == [
        ("right", "rank-crash", "slack")
    ]
    saved = load_diagnosis(web, new[0].feedback.diagnosis)
    assert saved.en.causes[0].id == "rank-crash"


def test_not_it_asks_for_the_cause_and_keeps_it(
    slack: FakeSlack, channel: Channel, answer: Message, web: Service
) -> None:
    """The menu lists every cause; the one chosen is what it was."""
    before = len(read_feedback(web))
    question = slack.press(channel, answer, "wrong")
    menu, _ = find_element(question, "actual")
    offered = {option["value"] for option in menu["options"]}
    assert offered == {cause.id for cause in web.knowledge.causes} | {"unknown"}
    slack.press(channel, question, "actual", choice="network-config")
    new = read_feedback(web)[before:]
    assert [(item.feedback.verdict, item.feedback.actual) for item in new] == [
        ("wrong", "network-config")
    ]


def test_a_second_press_of_the_same_person_is_no_second_vote(
    slack: FakeSlack, channel: Channel, answer: Message, web: Service
) -> None:
    """Two people make two votes; a delivery that comes twice makes one."""
    before = len(read_feedback(web))
    slack.press(channel, answer, "right", user="ann")
    delivery = slack.click(channel, answer, "right", user="ben")
    slack.until(lambda: len(read_feedback(web)) == before + 2, what="feedback")
    slack.send("interactive", delivery.payload)
    slack.press(channel, answer, "fixes")
    assert len(read_feedback(web)) == before + 2


def reply_to(slack: FakeSlack, channel: Channel, root: Message, text: str) -> Message:
    """Say something in a thread and give the answer to it."""
    number = len(slack.answers(channel, root)) + 1
    finished(slack, slack.say(channel, text, thread=root))
    return slack.answer(channel, root, number=number)


def confirmed(slack: FakeSlack, channel: Channel, root: Message, text: str) -> Message:
    """The bot's answer to a yes to its question whether it ended so."""
    reply_to(slack, channel, root, text)
    return reply_to(slack, channel, root, "yes")


def actions(message: Message) -> list[str]:
    """What can be pressed on a message, in order."""
    elements = [item for block in message.blocks for item in block.get("elements", ())]
    return [item["action_id"] for item in elements if "action_id" in item]


@pytest.mark.parametrize("words", ["that was it", "就是这个"])
def test_saying_that_it_was_it_offers_to_keep_that(
    slack: FakeSlack, channel: Channel, answer: Message, web: Service, words: str
) -> None:
    """The reply has the buttons; a press keeps the cause the reply names, for the thread's log."""
    reply = confirmed(slack, channel, answer, words)
    assert actions(reply) == ["right", "wrong"]
    before = len(read_feedback(web))
    thanks = slack.press(channel, reply, "right")
    (new,) = read_feedback(web)[before:]
    title = web.knowledge.cause_by_id["rank-crash"].title
    assert (new.feedback.verdict, new.feedback.actual) == ("right", "rank-crash")
    assert title.en in thanks.shown or title.zh in thanks.shown
    assert load_diagnosis(web, new.feedback.diagnosis).en.causes[0].id == "rank-crash"


def verdicts(web: Service, after: int) -> list[tuple[str, str, str]]:
    """Verdict, cause named and cause it was, of all feedback but the first ones."""
    kept_now = [item.feedback for item in read_feedback(web)[after:]]
    return [(item.verdict, item.cause, item.actual) for item in kept_now]


@pytest.mark.parametrize(
    ("words", "actual"),
    [
        ("wrong, it was the network configuration", "network-config"),
        ("yes it was the firewall", "network-config"),
        ("搞定了，确实是数据不均", "uneven-data"),
    ],
    ids=["denied", "agreed", "chinese"],
)
def test_saying_that_it_was_another_cause_offers_to_keep_that(
    slack: FakeSlack, channel: Channel, answer: Message, web: Service, words: str, actual: str
) -> None:
    """The answer named another cause than the words do: it was wrong, however they begin."""
    reply = confirmed(slack, channel, answer, words)
    title = web.knowledge.cause_by_id[actual].title
    assert title.en in reply.shown or title.zh in reply.shown
    before = len(read_feedback(web))
    slack.press(channel, reply, "right")
    assert verdicts(web, before) == [("wrong", "rank-crash", actual)]


def test_of_one_persons_verdicts_on_an_incident_the_last_one_counts(
    slack: FakeSlack, channel: Channel, answer: Message, web: Service
) -> None:
    """On the diagnosis, on the reply about it, in its menu: one vote. Another's is another."""
    before = len(read_feedback(web))
    slack.press(channel, answer, "right")
    assert verdicts(web, before) == [("right", "rank-crash", "rank-crash")]
    reply = confirmed(slack, channel, answer, "wrong, it was the network configuration")
    slack.press(channel, reply, "right")
    assert verdicts(web, before) == [("wrong", "rank-crash", "network-config")]
    question = slack.press(channel, reply, "wrong")
    slack.press(channel, question, "actual", choice="rank-crash")
    assert verdicts(web, before) == [("right", "rank-crash", "rank-crash")]
    slack.press(channel, reply, "right", user="ben")
    assert verdicts(web, before)[1:] == [("wrong", "rank-crash", "network-config")]


def test_saying_that_it_was_not_it_keeps_nothing(
    slack: FakeSlack, channel: Channel, answer: Message, web: Service
) -> None:
    """Which one it was nobody knows yet: the reply goes on to the next cause."""
    before = len(read_feedback(web))
    reply = reply_to(slack, channel, answer, "no, that's not it")
    assert "right" not in actions(reply)
    title = web.knowledge.cause_by_id["rank-crash"].title
    assert title.en in reply.shown or title.zh in reply.shown
    assert len(read_feedback(web)) == before


@pytest.mark.parametrize("language", ["en", "zh"])
def test_fixes_are_shown(slack: FakeSlack, channel: Channel, web: Service, language: str) -> None:
    """The best fixes of the leading cause come into the thread, in the language of the answer.

    Incidents that other tests have kept take part in both.
    """
    log = samples.english_log() if language == "en" else samples.chinese_log()
    asked = slack.say(channel, log, mention=True)
    answer = answered(slack, channel, asked)
    shown = slack.press(channel, answer, "fixes")
    lead = web.diagnose_text(log).causes[0]
    assert shown.root == asked.ts
    assert shown.ephemeral_for == ""
    for fix in lead.fixes[:FIXES]:
        assert fix.title in shown.shown
    for command in lead.fixes[0].commands[:3]:
        assert command.splitlines()[0] in shown.shown


def test_more_cases_are_shown(
    slack: FakeSlack, channel: Channel, answer: Message, web: Service
) -> None:
    """The button shows the similar cases of its diagnosis, in their order."""
    shown = slack.press(channel, answer, "cases").shown
    element, _ = find_element(answer, "cases")
    cases = load_diagnosis(web, DiagnosisRef.decode(element["value"]).saved_id).en.cases
    places = [shown.find(case.id) for case in cases[:8]]
    assert -1 not in places
    assert places == sorted(places)


def test_the_next_check_can_be_answered_with_a_button(slack: FakeSlack, channel: Channel) -> None:
    """An undecided log leads to a question; its answer moves the incident on, in the thread."""
    asked = slack.say(channel, samples.undecided_log(), mention=True)
    answer = answered(slack, channel, asked)
    question = slack.press(channel, answer, "next_check")
    assert question.root == asked.ts
    actions = [
        element["action_id"]
        for block in question.blocks
        for element in block.get("elements", ())
        if str(element.get("action_id", "")).startswith("answer_")
    ]
    assert actions[:2] == ["answer_1", "answer_2"]
    reply = slack.press(channel, question, "answer_1")
    assert reply.root == asked.ts
    assert reply.shown != question.shown


def test_an_incident_is_kept_with_its_resolution(
    slack: FakeSlack, alpha: Workspace, channel: Channel, answer: Message, web: Service
) -> None:
    """Cause and fix of the form stand in the entry the page shows, which is found from then on."""
    before = set(web.store.ids())
    fix = "Halved the micro batch on the evaluation step of the zanzibar cluster."
    reply = slack.fill_in(channel, answer, {"cause": "rank-crash", "fix": fix})
    (entry_id,) = set(web.store.ids()) - before
    entry = web.entry(entry_id)
    assert entry_id in reply.shown
    assert (entry.kind, entry.resolved, entry.causes[0].id) == ("incident", True, "rank-crash")
    assert entry.fixes[0].title.en == fix


def test_an_incident_may_stay_open(
    slack: FakeSlack, alpha: Workspace, channel: Channel, web: Service
) -> None:
    """Without a cause the log is kept as an open incident, its secrets hidden."""
    log = samples.hostile_log().replace("step 3180", "step 41804180")
    answer = answered(slack, channel, slack.say(channel, log, mention=True))
    before = set(web.store.ids())
    slack.fill_in(channel, answer, {})
    (entry_id,) = set(web.store.ids()) - before
    entry = web.entry(entry_id)
    assert entry.resolved is False
    text = "\n".join(section.text for section in entry.sections)
    assert "OutOfMemoryError" in text
    assert not [secret for secret in samples.SECRETS if secret in text]


def test_the_shortcut_diagnoses_somebody_elses_message(
    slack: FakeSlack, channel: Channel, reference: Service
) -> None:
    """The entry of a message's menu answers in that message's thread."""
    message = slack.say(channel, samples.chinese_log(), user="ben")
    delivery = slack.message_shortcut(channel, message, "diagnose_message", user="ann")
    finished(slack, message)
    (answer,) = slack.answers(channel, message)
    assert reference.diagnose_text(samples.chinese_log()).causes[0].title in answer.shown
    assert delivery.acked


def test_a_button_of_a_lost_diagnosis_says_so(
    slack: FakeSlack, channel: Channel, answer: Message
) -> None:
    """A button whose diagnosis is gone, or whose value is none of ours, gets a sentence."""
    element, _ = find_element(answer, "fixes")
    for value in ('{"kept":"gone","language":"en"}', "{}", "not json"):
        element["value"] = value
        reply = slack.press(channel, answer, "fixes")
        assert reply.ephemeral_for == slack.add_user(channel, "ann").id
        assert reply.text
