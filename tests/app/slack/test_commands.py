"""`/timeout` and its verbs, in both languages, answered to the person alone."""

from __future__ import annotations

import pytest

from app.slack.commands import changed_settings, parse
from app.slack.requests import ChannelSettings
from kb.service import Service
from kb.text.language import has_han
from tests.app.slack.fake import samples
from tests.app.slack.fake.fake_slack import FakeSlack
from tests.app.slack.fake.workspace import Channel, Message


def alone(slack: FakeSlack, channel: Channel, message: Message) -> bool:
    """Whether only the person who asked sees it."""
    return message.ephemeral_for == slack.add_user(channel, "ann").id


def test_a_text_is_diagnosed(slack: FakeSlack, channel: Channel, reference: Service) -> None:
    """`/timeout <log>` answers with the diagnosis."""
    log = samples.english_log()
    slack.slash(channel, log)
    title = reference.diagnose_text(log).causes[0].title

    def found() -> list[Message]:
        return [item for item in slack.answers(channel) if title in item.shown]

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
    shown = (answer := slack.run_command(channel, text)).shown
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
    answer = slack.run_command(channel, f"case {case.id}")
    assert case.title.en in answer.shown
    assert case.url in answer.shown
    shown = slack.run_command(channel, "case rank-crash").shown
    assert reference.knowledge.cause_by_id["rank-crash"].title.en in shown
    assert alone(slack, channel, answer)


def test_a_case_that_is_not_there_is_said_so(slack: FakeSlack, channel: Channel) -> None:
    """An unknown id is named; nobody else sees the mistake."""
    answer = slack.run_command(channel, "case no-such-case-at-all")
    assert "no-such-case-at-all" in answer.shown
    assert alone(slack, channel, answer)


@pytest.mark.parametrize("verb", ["lint", "检查"])
def test_lint_says_what_is_wrong_with_settings(
    slack: FakeSlack, channel: Channel, reference: Service, verb: str
) -> None:
    """The warnings are the service's."""
    text = "export NCCL_TIMEOUT=3600 NCCL_IB_TIMEOUT=99"
    warnings = reference.lint(text, language="zh" if verb == "检查" else "en")
    assert len(warnings) >= 1
    shown = slack.run_command(channel, f"{verb} {text}").shown
    for warning in warnings:
        assert warning.setting in shown
        assert warning.explanation[:60] in shown


def test_nothing_to_complain_about_is_said(slack: FakeSlack, channel: Channel) -> None:
    """A setting that is right gets a sentence, not an empty message."""
    assert "Nothing wrong" in slack.run_command(channel, "lint OMP_NUM_THREADS=1").shown


@pytest.mark.parametrize("text", ["help", "", "帮助", "search", "case"])
def test_help_names_every_command(slack: FakeSlack, channel: Channel, text: str) -> None:
    """Help, nothing, and a verb without its words all show what can be done."""
    answer = slack.run_command(channel, text)
    shown = answer.shown
    for verb in ("search", "case", "lint", "settings"):
        assert f"/timeout {verb}" in shown
    assert has_han(shown) is (text == "帮助")
    assert alone(slack, channel, answer)


def test_settings_are_shown_changed_and_kept(slack: FakeSlack, channel: Channel) -> None:
    """What is set is shown; a wrong value is refused and changes nothing."""
    assert "auto off" in slack.run_command(channel, "settings").shown
    assert "auto on" in slack.run_command(channel, "settings auto on").shown
    assert "auto on" in slack.run_command(channel, "settings").shown
    wrong = slack.run_command(channel, "settings auto perhaps").shown
    assert "auto perhaps" in wrong
    assert "auto on" in slack.run_command(channel, "settings").shown
    other = slack.team_of(channel).add_channel("another")
    assert "auto off" in slack.run_command(other, "settings").shown


@pytest.mark.parametrize(
    ("text", "verb", "rest"),
    [
        ("", "help", ""),
        ("search all_gather hang", "search", "all_gather hang"),
        ("搜索 保存 卡住", "search", "保存 卡住"),
        ("case rank-crash", "case", "rank-crash"),
        ("case closed, but it hangs", "", "case closed, but it hangs"),
        ("lint NCCL_TIMEOUT=1\nX=2", "lint", "NCCL_TIMEOUT=1\nX=2"),
        ("search failed\n[rank0]: Watchdog", "", "search failed\n[rank0]: Watchdog"),
        ("Settings quiet on", "settings", "quiet on"),
        ("training hangs", "", "training hangs"),
    ],
)
def test_commands_are_split(text: str, verb: str, rest: str) -> None:
    """A verb stands first and alone decides; a log is never taken for one."""
    assert parse(text) == (verb, rest)


@pytest.mark.parametrize(
    ("rest", "changed"),
    [
        ("auto on", ChannelSettings(auto=True, quiet=True)),
        ("QUIET off", ChannelSettings()),
        ("language zh", ChannelSettings(language="zh", quiet=True)),
        ("ephemeral 开", ChannelSettings(ephemeral=True, quiet=True)),
        ("language fr", None),
        ("auto maybe", None),
        ("colour on", None),
    ],
)
def test_settings_change_one_thing(rest: str, changed: ChannelSettings | None) -> None:
    """One setting changes, the others stay; what is none changes nothing."""
    assert changed_settings(ChannelSettings(quiet=True), rest) == changed
