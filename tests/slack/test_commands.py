"""`/timeout` and its verbs, in both languages, answered to the person alone."""

from __future__ import annotations

import pytest

from kb.service import Service
from tests.slack import samples
from tests.slack.calls import strings
from tests.slack.delivery import Delivery
from tests.slack.fake_slack import FakeSlack
from tests.slack.workspace import Channel, Message


def text_of(message: Message) -> str:
    """All strings of a message's blocks."""
    return "\n".join(strings(message.blocks))


def run(slack: FakeSlack, channel: Channel, text: str) -> Message:
    """Run `/timeout <text>` and give its answer."""
    number = len(slack.answers(channel)) + 1
    delivery = slack.slash(channel, text)
    answer = slack.answer(channel, number=number)
    acknowledged_in_time(slack, delivery)
    return answer


def acknowledged_in_time(slack: FakeSlack, delivery: Delivery) -> None:
    """Slack shows an error to the person after three seconds."""
    slack.until(lambda: delivery.acked, what="acknowledgement")
    assert (delivery.took_s or 9.0) < 3
    assert len(delivery.attempts) == 1


def alone(slack: FakeSlack, channel: Channel, message: Message) -> bool:
    """Whether only the person who asked sees it."""
    return message.ephemeral_for == slack.add_user(channel, "ann").id


def test_a_text_is_diagnosed(slack: FakeSlack, channel: Channel, reference: Service) -> None:
    """`/timeout <log>` answers with the diagnosis."""
    log = samples.english_log()
    slack.slash(channel, log)
    title = reference.diagnose_text(log).causes[0].title

    def found() -> list[Message]:
        return [item for item in slack.answers(channel) if title in text_of(item)]

    answers = slack.until(found, what="diagnosis")
    assert len(answers) == 1
    assert answers[0].blocks[0]["type"] == "header"


@pytest.mark.parametrize(
    ("text", "language"),
    [("search NCCL timeout in broadcast", "en"), ("搜索 保存检查点 超时", "zh")],
)
def test_search_finds_what_the_service_finds(
    slack: FakeSlack, channel: Channel, reference: Service, text: str, language: str
) -> None:
    """The hits and their order are the service's."""
    shown = text_of(answer := run(slack, channel, text))
    query = text.partition(" ")[2]
    hits = reference.search(query, language=language).hits[:5]  # type: ignore[arg-type]
    places = [shown.find(hit.entry_id) for hit in hits]
    assert len(hits) == 5
    assert -1 not in places
    assert places == sorted(places)
    assert hits[0].title.get(language) in shown  # type: ignore[arg-type]
    assert alone(slack, channel, answer)


def test_a_case_and_a_cause_are_shown_by_id(
    slack: FakeSlack, channel: Channel, reference: Service
) -> None:
    """`case <id>` shows a case with its link, or a root cause."""
    case = reference.knowledge.cases[0]
    answer = run(slack, channel, f"case {case.id}")
    assert case.title.en in text_of(answer)
    assert case.url in text_of(answer)
    shown = text_of(run(slack, channel, "case rank-crash"))
    assert reference.knowledge.cause_by_id["rank-crash"].title.en in shown
    assert alone(slack, channel, answer)


def test_a_case_that_is_not_there_is_said_so(slack: FakeSlack, channel: Channel) -> None:
    """An unknown id is named; nobody else sees the mistake."""
    answer = run(slack, channel, "case no-such-case-at-all")
    assert "no-such-case-at-all" in text_of(answer)
    assert alone(slack, channel, answer)


@pytest.mark.parametrize("verb", ["lint", "检查"])
def test_lint_says_what_is_wrong_with_settings(
    slack: FakeSlack, channel: Channel, reference: Service, verb: str
) -> None:
    """The warnings are the service's."""
    text = "export NCCL_TIMEOUT=3600 NCCL_IB_TIMEOUT=99"
    warnings = reference.lint(text, language="zh" if verb == "检查" else "en")
    assert len(warnings) >= 1
    shown = text_of(run(slack, channel, f"{verb} {text}"))
    for warning in warnings:
        assert warning.setting in shown
        assert warning.explanation[:60] in shown


def test_nothing_to_complain_about_is_said(slack: FakeSlack, channel: Channel) -> None:
    """A setting that is right gets a sentence, not an empty message."""
    assert "Nothing wrong" in text_of(run(slack, channel, "lint OMP_NUM_THREADS=1"))


@pytest.mark.parametrize("text", ["help", "", "帮助", "search", "case"])
def test_help_names_every_command(slack: FakeSlack, channel: Channel, text: str) -> None:
    """Help, nothing, and a verb without its words all show what can be done."""
    answer = run(slack, channel, text)
    shown = text_of(answer)
    for verb in ("search", "case", "lint", "settings"):
        assert f"/timeout {verb}" in shown
    assert any("\u4e00" <= char <= "\u9fff" for char in shown) is (text == "帮助")
    assert alone(slack, channel, answer)


def test_settings_are_shown_changed_and_kept(slack: FakeSlack, channel: Channel) -> None:
    """What is set is shown; a wrong value is refused and changes nothing."""
    assert "auto off" in text_of(run(slack, channel, "settings"))
    assert "auto on" in text_of(run(slack, channel, "settings auto on"))
    assert "auto on" in text_of(run(slack, channel, "settings"))
    wrong = text_of(run(slack, channel, "settings auto perhaps"))
    assert "auto perhaps" in wrong
    assert "auto on" in text_of(run(slack, channel, "settings"))
    other = slack.team_of(channel).add_channel("another")
    assert "auto off" in text_of(run(slack, other, "settings"))


def test_a_language_can_be_set(slack: FakeSlack, channel: Channel) -> None:
    """`settings language zh` makes every answer of the channel Chinese."""
    run(slack, channel, "settings language zh")
    shown = text_of(run(slack, channel, "search NCCL timeout in broadcast"))
    assert any("\u4e00" <= char <= "\u9fff" for char in shown)
