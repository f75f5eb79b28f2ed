"""The pure parts of the Slack face: escapes, limits, what is read out of Slack's payloads."""

from __future__ import annotations

import asyncio
import gzip
import html
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from slack_sdk.http_retry.request import HttpRequest
from slack_sdk.http_retry.response import HttpResponse
from slack_sdk.http_retry.state import RetryState

from app.labels import Words
from app.present import present
from app.quoting import plain_block
from app.slack import incoming, kit
from app.slack.clicks import click_of
from app.slack.commands import changed_settings, parse
from app.slack.diagnosis_blocks import cases_message, diagnosis_message, fixes_message
from app.slack.files import UNPACKED_FACTOR, check_address, readable, unpack_all
from app.slack.handles import unpack as unpack_handle
from app.slack.logs import HideTokens
from app.slack.types import ChannelSettings, Handle, SlackFile, conversation_id
from app.slack.workspaces import RateLimited, check_settings
from kb.errors import InputError, SettingsError
from kb.settings import Settings
from kb.types import Bilingual, Diagnosis

Labels = dict[str, Bilingual]
HANDLE = Handle(kept="abcdefghijklmnop", language="en", conversation="slack:T1:C1:1.2")
TRICKS = (
    "<!channel>",
    "<@U123>",
    "<http://evil.example|click>",
    "@here",
    "&lt;!channel&gt;",
    "&amp;lt;!everyone&amp;gt;",
    "*bold* _it_ ~no~ `code` ```fence```",
    ":rotating_light: > quote",
    "http://evil.example/x",
)
HOSTILE = st.lists(st.sampled_from(TRICKS) | st.text(max_size=20), min_size=1, max_size=200).map(
    " ".join
)


def text_objects(value: object) -> Iterator[dict[str, Any]]:
    """Every object with a text, at any depth."""
    if isinstance(value, dict):
        if isinstance(value.get("text"), str):
            yield value
        for item in value.values():
            yield from text_objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from text_objects(item)


@pytest.mark.parametrize("text", TRICKS)
def test_an_escaped_text_shows_as_written(text: str) -> None:
    """Undoing Slack's one level of escapes gives the text back; no markup is left before."""
    shown = kit.escaped(text)
    assert "<" not in shown
    assert ">" not in shown
    assert html.unescape(shown).replace("\u200b", "") == text
    assert incoming.unescape(shown).replace("\u200b", "") == text


@given(HOSTILE)
def test_no_text_becomes_markup(text: str) -> None:
    """Whatever is written: no angle bracket, every & starts one of Slack's three entities."""
    shown = kit.escaped(text)
    assert not set(shown) & {"<", ">"}
    bare = shown.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    assert "&" not in bare
    assert "@h" not in shown
    assert "://" not in shown
    assert html.unescape(shown).replace("\u200b", "") == plain_block(text).replace("\u200b", "")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(text=HOSTILE)
def test_a_hostile_answer_holds_no_markup_and_keeps_the_limits(
    hostile: Callable[[str], Diagnosis], labels: Labels, text: str
) -> None:
    """Texts from outside stand only where Slack interprets nothing, within its limits."""
    view = present(hostile(text), labels)
    words = Words(labels, "en")
    for message in (
        diagnosis_message(view, words, HANDLE, public_url="https://kb.example.org"),
        fixes_message(view, words),
        cases_message(view, words),
    ):
        assert not set(message.text) & {"<", ">"}
        assert len(message.text) <= 4000
        assert 1 <= len(message.blocks) <= kit.MAX_BLOCKS
        assert sum(kit.size(block) for block in message.blocks) <= kit.MAX_MESSAGE + 100
        kinds = {item["type"] for item in text_objects(message.blocks)}
        assert kinds <= {"plain_text", "text", "link"}
        for item in text_objects(message.blocks):
            assert 1 <= len(item["text"]) <= kit.MAX_SECTION
            assert item["type"] != "plain_text" or item["emoji"] is False
        ours = ("https://example.org/", "https://kb.example.org/")
        links = {item["url"] for item in text_objects(message.blocks) if item["type"] == "link"}
        assert all(url.startswith(ours) for url in links if url != text)


def test_the_answer_names_verdict_evidence_fix_and_cases(
    diagnosis: Diagnosis, labels: Labels
) -> None:
    """Verdict first, then evidence, the first fix's command, the case's link, the buttons."""
    view = present(diagnosis, labels)
    message = diagnosis_message(view, Words(labels, "en"), HANDLE)
    assert message.blocks[0] == kit.header(view.verdict)
    texts = [item["text"] for item in text_objects(message.blocks)]
    assert view.causes[0].evidence[0].quote in texts
    assert view.causes[0].fixes[0].commands[0] in texts
    assert {"type": "link", "url": view.cases[0].url, "text": view.cases[0].title} in list(
        text_objects(message.blocks)
    )
    buttons = message.blocks[-1]["elements"]
    assert [button["action_id"] for button in buttons] == [
        "right",
        "wrong",
        "fixes",
        "cases",
        "incident",
        "next_check",
    ]
    assert {unpack_handle(button["value"]) for button in buttons} == {HANDLE}


def test_an_undecided_answer_asks_instead_of_claiming(
    service: Any, undecided_log: str, labels: Labels
) -> None:
    """Without a verdict nobody can say that it was right; the check that decides is shown."""
    diagnosis = service.diagnose_text(undecided_log, language="en")
    message = diagnosis_message(present(diagnosis, labels), Words(labels, "en"), HANDLE)
    actions = [button["action_id"] for button in message.blocks[-1]["elements"]]
    assert "right" not in actions
    assert "wrong" in actions
    assert "dmesg -T" in [item["text"] for item in text_objects(message.blocks)]


def test_a_long_message_is_cut_before_its_buttons() -> None:
    """At most 50 blocks; the last ones stay and a sentence tells that something is missing."""
    blocks = [kit.section(f"line {number}") for number in range(200)]
    last = [kit.actions([kit.button("go", "go", "x")])]
    message = kit.message("t", blocks, last=last, cut="the rest is left out")
    assert len(message.blocks) == kit.MAX_BLOCKS
    assert message.blocks[:48] == blocks[:48]
    assert message.blocks[48:] == [kit.context("the rest is left out"), *last]


def test_much_text_is_cut_too() -> None:
    """Not more characters than Slack takes in all blocks together."""
    blocks = [kit.section("x" * 2900) for _ in range(10)]
    message = kit.message("t", blocks, cut="the rest is left out")
    assert [kit.size(block) for block in message.blocks] == [2900] * 3 + [20]


@given(st.text())
def test_what_people_write_is_read_as_written(text: str) -> None:
    """Slack escapes &, < and >; undone once, the text is the same, entities in it included."""
    sent = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert incoming.unescape(sent) == text


@pytest.mark.parametrize(
    ("sent", "written"),
    [
        ("see <http://train.py|train.py> line 3", "see train.py line 3"),
        ("<https://example.org/a?b=1&amp;c=2>", "https://example.org/a?b=1&c=2"),
        ("<https://example.org/x|the log>", "the log (https://example.org/x)"),
        ("<mailto:a@b.org|a@b.org> <tel:123|123>", "a@b.org 123"),
        ("<@U123ABC> <#C1|ops> <!here> <!subteam^S1|@oncall>", "@U123ABC #ops @here @oncall"),
        ("std::vector<int> and Tensor<float>", "std::vector<int> and Tensor<float>"),
        ("&amp;lt;!channel&amp;gt;", "&lt;!channel&gt;"),
    ],
    ids=["file", "link", "labelled", "mail", "names", "bot", "double"],
)
def test_links_slack_made_are_undone(sent: str, written: str) -> None:
    """A log with file names, addresses and type names is read as it stood."""
    assert incoming.unescape(sent) == written


def test_a_bots_blocks_and_attachments_are_read() -> None:
    """What a CI bot posts is found where it put it, fences taken off."""
    message = {
        "bot_id": "B1",
        "text": "",
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": "job failed"}},
            {"type": "section", "text": {"type": "mrkdwn", "text": "```\nline &lt;1&gt;\n```"}},
            {
                "type": "rich_text",
                "elements": [
                    {
                        "type": "rich_text_preformatted",
                        "elements": [{"type": "text", "text": "line 2"}],
                    }
                ],
            },
        ],
        "attachments": [{"fallback": "unused", "text": "line 3"}],
    }
    read = incoming.message_text(message)
    assert [line for line in read.split("\n") if line] == [
        "job failed",
        "line <1>",
        "line 2",
        "line 3",
    ]
    assert incoming.from_bot(message)


def test_a_mention_is_read_without_the_name() -> None:
    """The bot's name goes, other names stay; the thread and the files come along."""
    event = {
        "user": "U1",
        "text": "<@UBOT> rank 3 hangs, <@U2> knows\nWatchdog",
        "ts": "5.6",
        "thread_ts": "1.2",
        "files": [
            {"id": "F1", "name": "a.log", "size": 7, "url_private_download": "https://f/a.log"},
            {"id": "F2", "mode": "tombstone"},
        ],
    }
    ask = incoming.ask_of_message(event, team="T1", channel="C1", bot_user="UBOT", origin="mention")
    assert ask.text == "rank 3 hangs, @U2 knows\nWatchdog"
    assert ask.files == (SlackFile(id="F1", name="a.log", size=7, url="https://f/a.log"),)
    assert ask.conversation == conversation_id("T1", "C1", "1.2")


@pytest.mark.parametrize(
    ("message", "bot"),
    [
        ({"user": "U1", "text": "x"}, False),
        ({"user": "U1", "bot_id": "B1"}, True),
        ({"subtype": "bot_message", "user": "U1"}, True),
        ({"text": "no user"}, True),
        ({"user": "USLACKBOT"}, True),
    ],
    ids=["person", "bot", "subtype", "nobody", "slackbot"],
)
def test_programs_are_told_from_people(message: dict[str, Any], bot: bool) -> None:
    """Only people are answered."""
    assert incoming.from_bot(message) is bot


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
    command = parse(text)
    assert (command.verb, command.rest) == (verb, rest)


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


@pytest.mark.parametrize(
    ("address", "host", "fine"),
    [
        ("https://files.slack.com/a.log", "files.slack.com", True),
        ("https://FILES.slack.com/a.log", "files.slack.com", True),
        ("http://files.slack.com/a.log", "files.slack.com", False),
        ("https://files.slack.com.evil.example/a.log", "files.slack.com", False),
        ("https://files.slack.com@evil.example/a.log", "files.slack.com", False),
        ("https://files.slack.com:8443/a.log", "files.slack.com", False),
        ("https://evil.example/files.slack.com", "files.slack.com", False),
        ("file:///etc/passwd", "files.slack.com", False),
        ("", "files.slack.com", False),
        ("http://127.0.0.1:9/a.log", "127.0.0.1:9", True),
        ("http://127.0.0.1:10/a.log", "127.0.0.1:9", False),
        ("http://10.0.0.1:9/a.log", "10.0.0.1:9", False),
    ],
)
def test_files_come_from_one_host(address: str, host: str, fine: bool) -> None:
    """Exactly the configured host over https; plain http on this machine alone."""
    if fine:
        check_address("a.log", address, host)
    else:
        with pytest.raises(InputError, match=r"a\.log is not at"):
            check_address("a.log", address, host)


def test_pictures_are_told_from_logs() -> None:
    """Names and kinds decide; a rotated log and an unnamed snippet are logs."""
    names = ["a.log", "b.TXT", "c.log.gz", "job.log.1", "d.png", "e.zip", "f.out"]
    files = [SlackFile(id=name, name=name) for name in names]
    files.append(SlackFile(id="s", name="Untitled", kind="text/plain"))
    logs, others = readable(files)
    assert [file.name for file in logs] == [
        "a.log",
        "b.TXT",
        "c.log.gz",
        "job.log.1",
        "f.out",
        "Untitled",
    ]
    assert others == ("d.png", "e.zip")


def test_an_archive_may_not_grow_without_end(tmp_path: Path) -> None:
    """A small file that unpacks to much is refused; one within the limit is unpacked."""
    body = b"0 timeouts\n" * 100_000
    packed = tmp_path / "job.log.gz"
    packed.write_bytes(gzip.compress(body))
    bare = tmp_path / "rank1.log"
    bare.write_bytes(b"x")
    plain = unpack_all([packed, bare], len(body) // UNPACKED_FACTOR)
    assert plain == [tmp_path / "job.log", bare]
    assert plain[0].read_bytes() == body
    packed.write_bytes(gzip.compress(body + b"0"))
    with pytest.raises(InputError, match=r"job\.log\.gz unpacks to more than"):
        unpack_all([packed, bare], len(body) // UNPACKED_FACTOR)


def test_a_button_of_somebody_else_is_refused() -> None:
    """A value that is none of ours gives an error a person understands."""
    with pytest.raises(InputError, match="older message"):
        unpack_handle("{}")


def test_a_click_is_placed_under_its_message() -> None:
    """In a channel an answer goes into the message's thread, in direct messages below it."""
    body = {
        "team": {"id": "T1"},
        "user": {"id": "U1"},
        "channel": {"id": "C1"},
        "container": {"message_ts": "5.6", "channel_id": "C1"},
        "message": {"ts": "5.6"},
        "actions": [{"action_id": "fixes", "value": "v", "action_ts": "7.8"}],
    }
    click, key = click_of(body)
    assert (click.place.thread, click.value) == ("5.6", "v")
    # Slack shows what is for one person in a thread only where the thread has begun.
    assert (click.private.thread, click.private.only_for) == ("", "U1")
    inside = click_of(body | {"message": {"ts": "5.6", "thread_ts": "1.2"}})[0]
    assert (inside.place.thread, inside.private.thread) == ("1.2", "1.2")
    assert key == click_of(body)[1]
    again = body | {"actions": [{"action_id": "fixes", "value": "v", "action_ts": "7.9"}]}
    assert click_of(again)[1] != key
    direct = click_of(body | {"channel": {"id": "D1"}})[0]
    assert direct.place.thread == ""


def test_no_token_passes_the_logger() -> None:
    """Messages, arguments and tracebacks are redacted."""
    token = "xoxb-" + "1234567890-abcdefghij"
    try:
        raise ValueError(token)
    except ValueError as error:
        info = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("x", logging.ERROR, "x", 1, "sent %s", (token,), info)
    assert HideTokens().filter(record)
    shown = logging.Formatter().format(record)
    assert token not in shown
    assert shown.count("<redacted:token>") == 2
    assert "Traceback" in shown


@pytest.mark.parametrize(
    ("chosen", "mode", "key"),
    [
        ({}, "socket", "TIMEOUT_KB_SLACK_BOT_TOKEN"),
        ({"slack_bot_token": "xoxb-1"}, "socket", "TIMEOUT_KB_SLACK_APP_TOKEN"),
        ({"slack_bot_token": "xoxb-1,wrong-kind"}, "http", "TIMEOUT_KB_SLACK_BOT_TOKEN"),
        (
            {"slack_bot_token": "xoxb-1", "slack_app_token": "xoxb-swapped"},
            "socket",
            "TIMEOUT_KB_SLACK_APP_TOKEN",
        ),
        ({"slack_bot_token": "xoxb-1"}, "http", "TIMEOUT_KB_SLACK_SIGNING_SECRET"),
    ],
    ids=["none", "no app token", "wrong kind", "swapped", "no secret"],
)
def test_a_missing_token_is_named(chosen: dict[str, str], mode: str, key: str) -> None:
    """The error names the setting and where to get it, and shows no value."""
    with pytest.raises(SettingsError, match=key) as caught:
        check_settings(Settings(**chosen), mode=mode)  # type: ignore[arg-type]
    assert "api.slack.com/apps" in caught.value.todo
    assert not any(value in str(caught.value) for value in chosen.values())


@pytest.mark.parametrize(
    ("status", "wait", "again"),
    [(429, "61", True), (429, "301", False), (429, "soon", False), (200, "1", False)],
    ids=["a minute", "too long", "no number", "no limit"],
)
def test_a_rate_limit_is_waited_for_unless_it_is_long(status: int, wait: str, again: bool) -> None:
    """Retry-After is obeyed up to five minutes; a longer one is an error, not a hanging job."""
    retry = RateLimited().can_retry_async(
        state=RetryState(),
        request=HttpRequest(method="POST", url="", headers={}),
        response=HttpResponse(status_code=status, headers={"Retry-After": [wait]}),
    )
    assert asyncio.run(retry) is again


def test_a_rate_limit_is_waited_for_to_its_end() -> None:
    """All of Retry-After, and less than a second more, whatever form the header comes in."""
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    async def run() -> None:
        for headers in ({"Retry-After": "61"}, {"retry-after": ["61"]}):
            state = RetryState()
            await RateLimited(wait=wait).prepare_for_next_attempt_async(
                state=state,
                request=HttpRequest(method="POST", url="", headers={}),
                response=HttpResponse(status_code=429, headers=headers),
            )
            assert (state.next_attempt_requested, state.current_attempt) == (True, 1)

    asyncio.run(run())
    assert [int(seconds) for seconds in waited] == [61, 61]
