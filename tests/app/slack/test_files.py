"""Attached files: read within limits, from Slack's file host and nowhere else."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from slack_sdk.web.async_client import AsyncWebClient

from app.slack import files, service_calls
from app.slack.files import check_address, download, readable
from app.slack.requests import SlackFile
from app.slack.service_calls import ServiceCalls
from kb.chat.chat import Chat
from kb.errors import InputError, SlowInputError
from kb.service import Service
from kb.settings import Settings
from kb.text.language import has_han
from tests.app.slack.conftest import tells_oom
from tests.app.slack.fake import samples
from tests.app.slack.fake.fake_slack import FakeSlack
from tests.app.slack.fake.harmless import strings
from tests.app.slack.fake.installation import answered, finished
from tests.app.slack.fake.workspace import Channel, StoredFile, Workspace
from tests.event_loop import run_coroutine

LOG = samples.english_log().encode()  # of a rank that crashed
MAX_FILE = 8 * 1024 * 1024  # of the bot, see conftest


def ask(slack: FakeSlack, channel: Channel, *files: StoredFile, text: str = "") -> str:
    """Post files with a mention and give the answer's text."""
    asked = slack.say(channel, text, mention=True, files=files)
    return answered(slack, channel, asked).shown


def test_a_log_of_five_megabytes(
    slack: FakeSlack, alpha: Workspace, channel: Channel, reference: Service
) -> None:
    """A large log is read whole: the cause stands at its end."""
    log = samples.long_log(5 * 1024 * 1024)
    shown = ask(slack, channel, alpha.add_file("job.log", log.encode()))
    lead = reference.diagnose_text(log).causes[0]
    assert lead.id == "rank-crash"
    assert lead.title in shown
    assert "rank 5" in shown


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_whole_answer_to_a_long_log_is_a_file_in_its_thread(
    slack: FakeSlack, alpha: Workspace, channel: Channel, reference: Service, language: str
) -> None:
    """The message tells a part of what to do, the file all of it, in the language of the words."""
    log = samples.english_log()
    text = "帮忙看看为什么卡住了，谢谢" if language == "zh" else "why did this hang?"
    asked = slack.say(channel, text, mention=True, files=[alpha.add_file("job.log", log.encode())])
    shown = answered(slack, channel, asked).shown
    (file,) = slack.attached(channel, asked)
    whole = file.body.decode()
    lead = reference.diagnose_text(log, language=language).causes[0]  # type: ignore[arg-type]
    assert lead.title in shown
    assert lead.title in whole
    commands = [item for fix in lead.fixes for item in fix.commands]
    commands += [check.command for check in lead.checks]
    lines = {line for command in commands for line in command.splitlines()}
    assert {line for line in lines if line not in whole} == set()
    assert {line for line in lines if line not in shown} != set()
    assert file.title == {"zh": "完整的诊断", "en": "The whole diagnosis"}[language]


def test_the_file_hides_secrets(slack: FakeSlack, alpha: Workspace, channel: Channel) -> None:
    """What is hidden in the message is hidden in the file."""
    file = alpha.add_file("job.log", samples.hostile_log().encode())
    asked = slack.say(channel, "", mention=True, files=[file])
    answered(slack, channel, asked)
    (whole,) = slack.attached(channel, asked)
    assert "CUDA out of memory" in whole.body.decode()
    assert [secret for secret in samples.SECRETS if secret in whole.body.decode()] == []


def test_a_short_paste_brings_no_file(slack: FakeSlack, channel: Channel) -> None:
    """A few lines of a log are answered by the message alone, a long paste by a file as well."""
    short = slack.say(channel, samples.undecided_log(), mention=True)
    answered(slack, channel, short)
    long = slack.say(channel, samples.long_log(10_000), mention=True)
    answered(slack, channel, long)
    assert [len(slack.attached(channel, asked)) for asked in (short, long)] == [0, 1]


def test_a_file_for_one_person_is_not_shared_with_all(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """Slack has no file that one person alone sees: an ephemeral answer comes without."""
    slack.run_command(channel, "settings ephemeral on")
    file = alpha.add_file("job.log", LOG)
    asked = slack.say(channel, "", mention=True, files=[file])
    assert finished(slack, asked) == "white_check_mark"
    assert slack.attached(channel) == []


def test_a_file_slack_refuses_costs_no_answer(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """The summary stands, with its check mark."""
    slack.api.broken += [("files.getUploadURLExternal", 500)] * 2
    shown = ask(slack, channel, alpha.add_file("job.log", LOG))
    assert slack.api.broken == []
    assert tells_oom(shown)
    assert slack.attached(channel) == []


def test_a_file_host_that_is_busy_is_asked_again(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """A 429 of the file host is waited for, and is no word about scopes."""
    file = alpha.add_file("job.log", LOG, behaviour="busy")
    assert tells_oom(ask(slack, channel, file))
    assert len([seen for seen in slack.files.seen if file.id in seen.path]) == 2


def test_several_files_and_a_compressed_one_are_one_incident(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """The parts of a log make one answer, a .gz among them."""
    lines = samples.english_log().splitlines(keepends=True)
    middle = len(lines) // 2
    head = alpha.add_file("node0.log.gz", gzip.compress("".join(lines[:middle]).encode()))
    head.mimetype = "application/gzip"
    tail = alpha.add_file("node1.log", "".join(lines[middle:]).encode())
    shown = ask(slack, channel, head, tail)
    assert tells_oom(shown)
    assert "rank 5" in shown
    assert "node0.log" in shown or "OutOfMemoryError" in shown


def test_a_picture_beside_a_log_is_named_and_passed_over(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """What cannot be a log is not fetched; the answer says so."""
    picture = alpha.add_file("screen.png", b"\x89PNG", mimetype="image/png")
    log = alpha.add_file("job.log", LOG)
    shown = ask(slack, channel, picture, log)
    assert tells_oom(shown)
    assert "screen.png" in shown
    assert not [seen for seen in slack.files.seen if picture.id in seen.path]


def refused(slack: FakeSlack, channel: Channel, *files: StoredFile) -> str:
    """Post files that cannot be read, and give what the bot says of it."""
    asked = slack.say(channel, "", mention=True, files=files)
    assert finished(slack, asked) == "warning"
    (answer,) = slack.answers(channel, asked)
    return answer.shown


def test_a_file_that_says_it_is_too_large_is_not_fetched(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """Its size is in the message; there is no need to ask."""
    file = alpha.add_file("huge.log", b"x", declared_size=MAX_FILE + 1)
    shown = refused(slack, channel, file)
    assert "huge.log" in shown
    assert "8" in shown
    assert not [seen for seen in slack.files.seen if file.id in seen.path]


def test_a_file_that_hides_its_size_is_cut_off(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """A body longer than told is not read beyond the limit."""
    body = b"[rank0]: a line of a log\n" * (MAX_FILE // 25 + 100_000)
    assert "big.log" in refused(slack, channel, alpha.add_file("big.log", body, declared_size=10))


DAMAGED = gzip.compress(LOG)[:20] + bytes(40) + gzip.compress(LOG)[60:]
BAD: dict[str, dict[str, Any]] = {
    "gone.log": {"body": b"x", "behaviour": "gone"},
    "login.log": {"body": b"x", "behaviour": "login"},
    "forbidden.log": {"body": b"x", "behaviour": "forbidden"},
    "binary.log": {"body": bytes(range(256)) * 64},
    "empty.log": {"body": b""},
    "damaged.log.gz": {"body": DAMAGED, "mimetype": "application/gzip"},
}


@pytest.mark.parametrize(
    ("name", "language"),
    [*((name, "en") for name in BAD), ("gone.log", "zh"), ("binary.log", "zh")],
)
def test_a_file_that_cannot_be_read_is_told(
    slack: FakeSlack, alpha: Workspace, channel: Channel, name: str, language: str
) -> None:
    """The answer names the file and no cause; sentence and next step are the channel's language."""
    slack.run_command(channel, f"settings language {language}")
    asked = slack.say(channel, "", mention=True, files=[alpha.add_file(name, **BAD[name])])
    assert finished(slack, asked) == "warning"
    (answer,) = slack.answers(channel, asked)
    assert name in answer.shown
    assert "Sign in" not in answer.shown
    assert "/tmp" not in answer.shown
    what, todo = (block for block in answer.blocks if block["type"] in ("section", "context"))
    for block in (what, todo):
        assert has_han("".join(strings(block)).replace(name, "")) is (language == "zh")


def test_a_damaged_archive_beside_a_log_is_named_in_the_answer(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """The log that can be read is diagnosed; the archive that cannot be costs a line."""
    log = alpha.add_file("rank0.log", LOG)
    damaged = alpha.add_file("rank1.log.gz", b"\x1f\x8b garbage", mimetype="application/gzip")
    shown = ask(slack, channel, damaged, log)
    assert tells_oom(shown)
    assert "rank1.log.gz" in shown


def test_an_archive_without_end_is_given_up(
    reference: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that take longer to read than a message may are refused, whatever they unpack to."""
    monkeypatch.setattr(service_calls, "READ_S", 0.0)
    bomb = tmp_path / "bomb.log.gz"
    bomb.write_bytes(gzip.compress(b"a line of a log\n" * 1_000_000))
    calls = ServiceCalls(reference, Chat(reference))
    with pytest.raises(SlowInputError):
        calls.diagnose_files([bomb], "", conversation="slack:T1:C1:1.0", language=None)


def test_another_host_gets_neither_request_nor_token(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """A redirect away from the file host, or an address elsewhere, is not followed."""
    away = f"http://{slack.elsewhere_host}/files-pri/x/download/job.log"
    file = alpha.add_file("job.log", b"x", behaviour="redirect", redirect=away)
    assert "not fetched" in refused(slack, channel, file)
    assert slack.elsewhere.seen == []


def test_a_file_host_in_the_message_is_not_trusted(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """The address in the event is checked, not believed."""

    class Elsewhere(StoredFile):
        """A file whose address is somebody else's."""

        def as_json(self, host: str) -> dict[str, object]:
            """The file object, pointing away."""
            return super().as_json(slack.elsewhere_host if host else host)

    body = LOG
    file = Elsewhere(id="F0ELSEWHERE", name="job.log", body=body, user="U1", team=alpha.team)
    assert "not fetched" in refused(slack, channel, file)
    assert slack.elsewhere.seen == []


def test_a_slow_file_holds_up_nobody_else(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """While one file does not get on, other questions are answered; then it is, too."""
    file = alpha.add_file("slow.log", LOG, behaviour="slow")
    slow = slack.say(channel, "", mention=True, files=[file])
    slack.until(
        lambda: [seen for seen in slack.files.seen if file.id in seen.path], what="download"
    )
    quick = [slack.say(channel, samples.english_log(), mention=True) for _ in range(3)]
    for message in quick:
        assert tells_oom(answered(slack, channel, message).shown)
    assert slow.reacted == ["eyes"]
    file.released = True
    assert tells_oom(answered(slack, channel, slow).shown)


def test_each_file_is_fetched_with_its_own_token(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """The file host sees the token of the workspace the file is in."""
    file = alpha.add_file("job.log", LOG)
    ask(slack, channel, file)
    seen = [item for item in slack.files.seen if file.id in item.path]
    assert {item.authorization for item in seen} == {f"Bearer {alpha.bot_token}"}


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
        with pytest.raises(InputError, match=r"slack_elsewhere .*a\.log"):
            check_address("a.log", address, host)


def test_pictures_are_told_from_logs() -> None:
    """Names and kinds decide; a rotated log and an unnamed snippet are logs."""
    names = ["a.log", "b.TXT", "c.log.gz", "job.log.1", "d.png", "e.zip", "f.out"]
    files = [SlackFile(id=name, name=name) for name in names]
    files.append(SlackFile(id="s", name="Untitled", media_type="text/plain"))
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


@pytest.mark.parametrize(
    ("retry_after", "limit_s", "tries"), [("0", 60.0, 3), ("61", 0.2, 1)], ids=["tries", "time"]
)
def test_a_host_that_stays_busy_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retry_after: str, limit_s: float, tries: int
) -> None:
    """After three tries, or when the time a file may take is over; the file is named."""
    asked: list[str] = []

    async def busy(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=429, headers={"Retry-After": retry_after})

    async def run() -> None:
        application = web.Application()
        application.router.add_get("/{name}", busy)
        async with TestServer(application) as server, aiohttp.ClientSession() as session:
            host = f"{server.host}:{server.port}"
            client = AsyncWebClient(token="xoxb-1", session=session)  # noqa: S106 - of the test
            settings = Settings(slack_files_host=host, slack_max_file=1)
            file = SlackFile(id="F1", name="job.log", url=f"http://{host}/job.log")
            await download(file, tmp_path / file.name, client=client, settings=settings)

    monkeypatch.setattr(files, "MAX_WAIT_S", limit_s)
    with pytest.raises(InputError, match=r"slack_lost .*job\.log"):
        run_coroutine(run())
    assert len(asked) == tries
