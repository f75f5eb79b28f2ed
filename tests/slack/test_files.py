"""Attached files: read within limits, from Slack's file host and nowhere else."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from app.slack.files import UNPACKED_FACTOR, unpack
from kb.errors import InputError
from kb.service import Service
from tests.slack import samples
from tests.slack.calls import strings
from tests.slack.fake_slack import FakeSlack
from tests.slack.office import answered, finished
from tests.slack.workspace import Channel, FileBehaviour, Message, StoredFile, Workspace

MAX_FILE = 8 * 1024 * 1024  # of the bot, see conftest


def attach(
    alpha: Workspace,
    name: str,
    body: bytes,
    *,
    behaviour: FileBehaviour = "ok",
    redirect: str = "",
    mimetype: str = "text/plain",
    told_size: int | None = None,
) -> StoredFile:
    """A file of Ann's."""
    return alpha.add_file(
        name,
        body,
        user=alpha.add_user("ann").id,
        behaviour=behaviour,
        redirect=redirect,
        mimetype=mimetype,
        told_size=told_size,
    )


def text_of(message: Message) -> str:
    """All strings of a message's blocks."""
    return "\n".join(strings(message.blocks))


def ask(slack: FakeSlack, channel: Channel, *files: StoredFile, text: str = "") -> str:
    """Post files with a mention and give the answer's text."""
    asked = slack.say(channel, text, mention=True, files=files)
    return text_of(answered(slack, channel, asked))


def test_a_log_of_five_megabytes(
    slack: FakeSlack, alpha: Workspace, channel: Channel, reference: Service
) -> None:
    """A large log is read whole: the cause stands at its end."""
    log = samples.long_log(5 * 1024 * 1024)
    shown = ask(slack, channel, attach(alpha, "job.log", log.encode()))
    lead = reference.diagnose_text(log).causes[0]
    assert lead.id == "rank-crash"
    assert lead.title in shown
    assert "rank 5" in shown


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_whole_answer_to_a_long_log_is_a_file_in_its_thread(
    slack: FakeSlack, alpha: Workspace, channel: Channel, reference: Service, language: str
) -> None:
    """The message tells a part of what to do, the file all of it, in the same language."""
    log = samples.english_log()
    text = "帮忙看看为什么卡住了，谢谢" if language == "zh" else "why did this hang?"
    asked = slack.say(channel, text, mention=True, files=[attach(alpha, "job.log", log.encode())])
    shown = text_of(answered(slack, channel, asked))
    (file,) = slack.attached(channel, asked)
    whole = file.body.decode()
    lead = reference.diagnose_text(log, language=language).causes[0]  # type: ignore[arg-type]
    assert lead.title in whole
    commands = [item for fix in lead.fixes for item in fix.commands]
    commands += [check.command for check in lead.checks]
    lines = {line for command in commands for line in command.splitlines()}
    assert {line for line in lines if line not in whole} == set()
    assert {line for line in lines if line not in shown} != set()
    assert file.title == {"zh": "完整的诊断", "en": "The whole diagnosis"}[language]


def test_the_file_hides_secrets(slack: FakeSlack, alpha: Workspace, channel: Channel) -> None:
    """What is hidden in the message is hidden in the file."""
    file = attach(alpha, "job.log", samples.hostile_log().encode())
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
    slack.slash(channel, "settings ephemeral on")
    slack.answer(channel)
    file = attach(alpha, "job.log", samples.english_log().encode())
    asked = slack.say(channel, "", mention=True, files=[file])
    assert finished(slack, asked) == "white_check_mark"
    assert slack.attached(channel) == []


def test_a_direct_message_gets_its_file_beside_the_answer(
    slack: FakeSlack, alpha: Workspace, direct: Channel
) -> None:
    """Without a thread the file stands in the conversation itself."""
    asked = slack.say(direct, "", files=[attach(alpha, "job.log", samples.english_log().encode())])
    finished(slack, asked)
    assert [file.name for file in slack.attached(direct)] == ["diagnosis.txt"]


def test_a_file_slack_refuses_costs_no_answer(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """The summary stands, with its check mark."""
    slack.api.broken += [("files.getUploadURLExternal", 500)] * 2
    shown = ask(slack, channel, attach(alpha, "job.log", samples.english_log().encode()))
    assert slack.api.broken == []
    assert "rank-crash" in shown
    assert slack.attached(channel) == []


def test_a_file_host_that_is_busy_is_asked_again(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """A 429 of the file host is waited for, and is no word about scopes."""
    file = attach(alpha, "job.log", samples.english_log().encode(), behaviour="busy")
    assert "rank-crash" in ask(slack, channel, file)
    assert len([seen for seen in slack.files.seen if file.id in seen.path]) == 2


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_words_beside_a_file_set_the_language(
    slack: FakeSlack, alpha: Workspace, channel: Channel, reference: Service, language: str
) -> None:
    """A Chinese question over an English log is answered in Chinese."""
    text = "帮忙看看为什么卡住了，谢谢" if language == "zh" else "why did this hang?"
    shown = ask(slack, channel, attach(alpha, "job.log", samples.english_log().encode()), text=text)
    title = reference.knowledge.cause_by_id["rank-crash"].title.get(language)  # type: ignore[arg-type]
    assert title in shown


def test_several_files_and_a_compressed_one_are_one_incident(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """The parts of a log make one answer, a .gz among them."""
    lines = samples.english_log().splitlines(keepends=True)
    middle = len(lines) // 2
    head = attach(alpha, "node0.log.gz", gzip.compress("".join(lines[:middle]).encode()))
    head.mimetype = "application/gzip"
    tail = attach(alpha, "node1.log", "".join(lines[middle:]).encode())
    shown = ask(slack, channel, head, tail)
    assert "rank-crash" in shown
    assert "rank 5" in shown
    assert "node0.log" in shown or "OutOfMemoryError" in shown


def test_a_picture_beside_a_log_is_named_and_passed_over(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """What cannot be a log is not fetched; the answer says so."""
    picture = attach(alpha, "screen.png", b"\x89PNG", mimetype="image/png")
    log = attach(alpha, "job.log", samples.english_log().encode())
    shown = ask(slack, channel, picture, log)
    assert "rank-crash" in shown
    assert "screen.png" in shown
    assert not [seen for seen in slack.files.seen if picture.id in seen.path]


def refused(slack: FakeSlack, channel: Channel, *files: StoredFile) -> str:
    """Post files that cannot be read, and give what the bot says of it."""
    asked = slack.say(channel, "", mention=True, files=files)
    assert finished(slack, asked) == "warning"
    (answer,) = slack.answers(channel, asked)
    return text_of(answer)


def test_a_file_that_says_it_is_too_large_is_not_fetched(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """Its size is in the message; there is no need to ask."""
    file = attach(alpha, "huge.log", b"x", told_size=MAX_FILE + 1)
    shown = refused(slack, channel, file)
    assert "huge.log" in shown
    assert "8" in shown
    assert not [seen for seen in slack.files.seen if file.id in seen.path]


def test_a_file_that_hides_its_size_is_cut_off(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """A body longer than told is not read beyond the limit."""
    body = b"[rank0]: a line of a log\n" * (MAX_FILE // 25 + 100_000)
    assert "big.log" in refused(slack, channel, attach(alpha, "big.log", body, told_size=10))


BAD = {
    "gone": ("gone", b"x"),
    "login": ("login", b"x"),
    "forbidden": ("forbidden", b"x"),
    "binary": ("ok", bytes(range(256)) * 64),
    "empty": ("ok", b""),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_read_is_told(
    slack: FakeSlack, alpha: Workspace, channel: Channel, name: str
) -> None:
    """Gone, a sign-in page, forbidden, binary, empty: the answer names the file, and no cause."""
    behaviour, body = BAD[name]
    shown = refused(slack, channel, attach(alpha, f"{name}.log", body, behaviour=behaviour))  # type: ignore[arg-type]
    assert f"{name}.log" in shown
    assert "Sign in" not in shown
    assert "/tmp" not in shown


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_read_is_told_in_the_channels_language(
    slack: FakeSlack, alpha: Workspace, channel: Channel, name: str
) -> None:
    """In a Chinese channel what was wrong and what to do are Chinese."""
    slack.slash(channel, "settings language zh")
    slack.answer(channel)
    behaviour, body = BAD[name]
    file = attach(alpha, f"{name}.log", body, behaviour=behaviour)  # type: ignore[arg-type]
    asked = slack.say(channel, "", mention=True, files=[file])
    finished(slack, asked)
    (answer,) = slack.answers(channel, asked)
    what, todo = (block for block in answer.blocks if block["type"] in ("section", "context"))
    for block in (what, todo):
        shown = "".join(strings(block)).replace(file.name, "")
        assert any("\u4e00" <= sign <= "\u9fff" for sign in shown), shown


def test_a_damaged_archive_is_told(slack: FakeSlack, alpha: Workspace, channel: Channel) -> None:
    """A .gz with a damaged middle is refused by name."""
    body = bytearray(gzip.compress(samples.english_log().encode()))
    body[20:60] = bytes(40)
    file = attach(alpha, "broken.log.gz", bytes(body), mimetype="application/gzip")
    assert "broken.log" in refused(slack, channel, file)


def test_a_damaged_archive_beside_a_log_is_named_in_the_answer(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """The log that can be read is diagnosed; the archive that cannot be costs a line."""
    log = attach(alpha, "rank0.log", samples.english_log().encode())
    damaged = attach(alpha, "rank1.log.gz", b"\x1f\x8b garbage", mimetype="application/gzip")
    shown = ask(slack, channel, damaged, log)
    assert "rank-crash" in shown
    assert "rank1.log.gz" in shown


def test_an_archive_bomb_is_stopped(tmp_path: Path) -> None:
    """A small file that unpacks to much more than the limit is given up on the way."""
    limit = 64 * 1024
    bomb = tmp_path / "bomb.log.gz"
    bomb.write_bytes(gzip.compress(bytes(UNPACKED_FACTOR * limit + 1)))
    assert bomb.stat().st_size < limit
    with pytest.raises(InputError, match=r"bomb\.log"):
        unpack(bomb, limit)
    fitting = tmp_path / "fitting.log.gz"
    fitting.write_bytes(gzip.compress(b"x" * (UNPACKED_FACTOR * limit)))
    assert unpack(fitting, limit).stat().st_size == UNPACKED_FACTOR * limit


def test_another_host_gets_neither_request_nor_token(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """A redirect away from the file host, or an address elsewhere, is not followed."""
    away = f"http://{slack.elsewhere_host}/files-pri/x/download/job.log"
    file = attach(alpha, "job.log", b"x", behaviour="redirect", redirect=away)
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

    body = samples.english_log().encode()
    file = Elsewhere(id="F0ELSEWHERE", name="job.log", body=body, user="U1", team=alpha.team)
    assert "not fetched" in refused(slack, channel, file)
    assert slack.elsewhere.seen == []


def test_a_slow_file_holds_up_nobody_else(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """While one file does not get on, other questions are answered; then it is, too."""
    file = attach(alpha, "slow.log", samples.english_log().encode(), behaviour="slow")
    slow = slack.say(channel, "", mention=True, files=[file])
    slack.until(
        lambda: [seen for seen in slack.files.seen if file.id in seen.path], what="download"
    )
    quick = [slack.say(channel, samples.english_log(), mention=True) for _ in range(3)]
    for message in quick:
        assert "rank-crash" in text_of(answered(slack, channel, message))
    assert slow.reacted == ["eyes"]
    file.released = True
    assert "rank-crash" in text_of(answered(slack, channel, slow))


def test_each_file_is_fetched_with_its_own_token(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """The file host sees the token of the workspace the file is in."""
    file = attach(alpha, "job.log", samples.english_log().encode())
    ask(slack, channel, file)
    seen = [item for item in slack.files.seen if file.id in item.path]
    assert {item.authorization for item in seen} == {f"Bearer {alpha.bot_token}"}
