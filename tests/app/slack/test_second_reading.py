"""A language model reads along: the answer comes at once, and is edited when the model has read."""

from __future__ import annotations

import copy
import itertools
import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.slack.requests import DiagnosisRef
from tests.app.slack.fake.fake_slack import FakeSlack, find_element
from tests.app.slack.fake.harmless import links, mentions, strings
from tests.app.slack.fake.installation import Installation, answered, finished, installed
from tests.app.slack.fake.manifest import Manifest
from tests.app.slack.fake.workspace import Channel, Message
from tests.kb.second_reader.conftest import ChatServer

LIMIT_S = 8  # the bot waits so long for the model
READS = "reads the report too"  # of the first answer
BLAMED = "shm-limits"  # by the model; nothing in the log speaks of it
WATCHDOG = (
    "Training on two nodes hangs after an hour.\n"
    "[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, "
    "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
)
_numbers = itertools.count(1000)


@dataclass(frozen=True, kw_only=True)
class Model:
    """The model's server; it answers while `gate` is open."""

    server: ChatServer
    gate: threading.Event

    def answers(self, ask: str = "Which switch?") -> None:
        """Blame shared memory, once the gate is open; of messages alone nothing is read."""
        text = json.dumps({"causes": {BLAMED: 0.95}, "quotes": {}, "ask": ask})

        def answer(question: dict[str, Any]) -> str:
            if "estimate the root cause" not in question["messages"][0]["content"]:
                return "{}"
            self.gate.wait(60)
            return text

        self.server.answer = answer


@pytest.fixture(scope="module")
def shared_model() -> Iterator[Model]:
    """The one of the module's bot."""
    one = Model(server=ChatServer(), gate=threading.Event())
    yield one
    one.gate.set()
    one.server.close()


@pytest.fixture(scope="module")
def shared(
    manifest: Manifest,
    built_home: Path,
    tmp_path_factory: pytest.TempPathFactory,
    known_urls: frozenset[str],
    shared_model: Model,
) -> Iterator[Installation]:
    """A bot with that model, fully trusted, and one thread to compute in."""
    home = Path(shutil.copytree(built_home, tmp_path_factory.mktemp("second") / "home"))
    with installed(
        manifest,
        home,
        known_urls,
        threads="1",
        lang="en",
        llm_base_url=shared_model.server.url,
        llm_model="tiny",
        llm_timeout=str(LIMIT_S),
        llm_trust="1",
        llm_per_minute="1000",
    ) as installation:
        yield installation


@pytest.fixture
def model(shared_model: Model) -> Model:
    """It behaves, and the gate is closed."""
    shared_model.gate.clear()
    shared_model.server.status = 200
    shared_model.server.message = None
    shared_model.answers()
    return shared_model


@pytest.fixture
def slack(shared: Installation, model: Model) -> FakeSlack:
    """The Slack of that bot."""
    assert model.server.status == 200
    return shared.slack


@pytest.fixture
def channel(shared: Installation, request: pytest.FixtureRequest) -> Channel:
    """A channel of the test's own."""
    return shared.alpha.add_channel(request.node.name[:60])


def new_log() -> str:
    """A log that was not there before: what the model answered once is not asked again."""
    return WATCHDOG.format(number=next(_numbers))


def saved_id(message: Message) -> str:
    """The diagnosis that the buttons of a message speak of."""
    return DiagnosisRef.decode(find_element(message, "fixes")[0]["value"]).saved_id


def edited(slack: FakeSlack, message: Message) -> str:
    """What stands in the message once the model has read."""
    slack.until(lambda: READS not in message.shown, what="edit of the answer")
    return message.shown


def test_the_answer_stands_first_and_is_edited_then(
    slack: FakeSlack, channel: Channel, model: Model
) -> None:
    """It says who reads along, and later in the same place what both readers hold of it."""
    asked = slack.say(channel, new_log(), mention=True)
    answer = answered(slack, channel, asked)
    first = answer.shown
    assert asked.reacted == ["eyes", "white_check_mark"]
    assert f"The language model at {model.server.url} {READS}, secrets removed" in first
    assert "1. Shared memory" not in first
    model.gate.set()
    second = edited(slack, answer)
    assert "1. Shared memory" in second
    assert "Language model tiny-1: Shared memory" in second
    assert "750 tokens" in second
    assert "It would ask: Which switch?" in second
    assert slack.answers(channel, asked) == [answer]
    assert [block["type"] for block in answer.blocks][-1] == "actions"


def test_buttons_mean_what_the_message_showed(
    slack: FakeSlack, channel: Channel, model: Model
) -> None:
    """One pressed before the edit means the first cause, one pressed after it the pooled one."""
    asked = slack.say(channel, new_log(), mention=True)
    answer = answered(slack, channel, asked)
    before = copy.deepcopy(answer)
    model.gate.set()
    edited(slack, answer)
    assert saved_id(answer) != saved_id(before)
    fixes = [slack.press(channel, message, "fixes") for message in (answer, before)]
    leads = [message.blocks[0]["text"]["text"] for message in fixes]
    assert [lead.startswith("Shared memory") for lead in leads] == [True, False]
    known = slack.press(channel, answer, "right")
    assert "Thank you, noted: it was “Shared memory" in known.shown


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        ("status", "its server answered with status 503"),
        ("refusal", "it refused"),
        ("nonsense", "its answer is not the JSON that was asked for"),
    ],
)
def test_a_failure_costs_a_line(
    shared: Installation, slack: FakeSlack, channel: Channel, model: Model, failure: str, why: str
) -> None:
    """The answer stays as it was, what was not read included; one line says why."""
    model.server.status = 503 if failure == "status" else 200
    if failure == "refusal":
        model.server.message = {"content": None, "refusal": "I must not."}
    if failure == "nonsense":
        model.server.answer = lambda _: str(model.gate.wait(60))
    picture = shared.alpha.add_file("a.png", b"x", mimetype="image/png")
    asked = slack.say(channel, new_log(), mention=True, files=[picture])
    answer = answered(slack, channel, asked)
    first, before = answer.blocks, saved_id(answer)
    model.gate.set()
    assert f"no opinion, {why}" in edited(slack, answer)
    same = [old == new for old, new in zip(first, answer.blocks, strict=True)]
    assert same.count(False) <= 2  # the line, and the footer that tells how long it took
    assert "a.png" in str(answer.blocks[-1])
    assert saved_id(answer) == before


def test_a_model_that_hangs_keeps_nobody(slack: FakeSlack, channel: Channel, model: Model) -> None:
    """Two answers come while it is silent, though one thread computes; then the line says so."""
    answers = []
    for _ in range(2):
        asked = slack.say(channel, new_log(), mention=True)
        answers.append(answered(slack, channel, asked))
    assert all(READS in answer.shown for answer in answers)
    assert not model.gate.is_set()
    for answer in answers:
        assert "no opinion, it took too long" in edited(slack, answer)


def test_what_is_said_meanwhile_stays(slack: FakeSlack, channel: Channel, model: Model) -> None:
    """The edit is of the answer it belongs to, whatever was talked about since."""
    asked = slack.say(channel, new_log(), mention=True)
    answer = answered(slack, channel, asked)
    assert finished(slack, slack.say(channel, "why?", thread=asked)) == "white_check_mark"
    reply = slack.answers(channel, asked)[1]
    said = reply.shown
    model.gate.set()
    assert "It would ask" in edited(slack, answer)
    assert slack.answers(channel, asked) == [answer, reply]
    assert reply.shown == said


def test_the_answer_to_its_question_is_read_too(
    slack: FakeSlack, channel: Channel, model: Model
) -> None:
    """What is said in the thread answers it; what the model then says stands below the reply."""
    model.gate.set()
    asked = slack.say(channel, new_log(), mention=True)
    edited(slack, answered(slack, channel, asked))
    slack.say(channel, "only the one of node 3", thread=asked)
    slack.until(lambda: len(slack.answers(channel, asked)) == 3, what="what the model adds")
    added = slack.answers(channel, asked)[2].shown
    assert "Language model tiny-1" in added
    sent = model.server.questions[-1]["messages"][1]["content"]
    assert "Which switch? only the one of node 3" in sent


def test_a_deleted_answer_stays_deleted(
    shared: Installation, slack: FakeSlack, channel: Channel, model: Model
) -> None:
    """Nothing is posted in its place."""
    asked = slack.say(channel, new_log(), mention=True)
    answer = answered(slack, channel, asked)
    channel.messages.remove(answer)
    seen = shared.bot.output.count("slack answer not edited")
    model.gate.set()
    slack.until(
        lambda: shared.bot.output.count("slack answer not edited") > seen, what="line of the log"
    )
    assert slack.answers(channel, asked) == []


def test_what_cannot_be_edited_is_not_read(
    shared: Installation, slack: FakeSlack, channel: Channel, model: Model
) -> None:
    """An answer for one person alone, and one that diagnoses nothing: no model is asked."""
    other = shared.alpha.add_channel("edited")
    model.gate.set()
    before = len(reports_read(model))
    slack.run_command(channel, "settings ephemeral on")
    private = slack.run_command(channel, new_log())
    assert private.ephemeral_for
    assert "WorkNCCL" in private.shown
    finished(slack, slack.say(other, "help", mention=True))
    log = new_log()
    asked = slack.say(other, log, mention=True)
    edited(slack, answered(slack, other, asked))
    assert not [text for text in strings(private.blocks) if model.server.url in text]
    assert len(reports_read(model)) == before + 1
    assert log.splitlines()[1] in reports_read(model)[-1]


def reports_read(model: Model) -> list[str]:
    """The reports the model was asked about; it reads the messages of the chat, too."""
    asked = [question["messages"] for question in model.server.questions]
    return [user["content"] for system, user in asked if "You read reports" in system["content"]]


def test_a_command_and_a_direct_message_are_read_alike(
    shared: Installation, slack: FakeSlack, channel: Channel, model: Model
) -> None:
    """Wherever the bot can edit what it said."""
    model.gate.set()
    slack.slash(channel, new_log())
    assert "It would ask" in edited(slack, _diagnosis(slack, channel))
    direct = shared.alpha.add_channel("direct", kind="im")
    slack.say(direct, new_log())
    assert "It would ask" in edited(slack, _diagnosis(slack, direct))


def _diagnosis(slack: FakeSlack, channel: Channel) -> Message:
    """The one answer in a channel, once it has its buttons."""

    def found() -> Message | None:
        return next((item for item in slack.answers(channel) if len(item.blocks) > 1), None)

    message = slack.until(found, what="diagnosis")
    assert message is not None
    return message


def test_the_models_words_are_letters_only(
    slack: FakeSlack, channel: Channel, model: Model
) -> None:
    """Its question calls nobody, links nowhere and formats nothing."""
    ask = "<!channel> *x* <http://evil.example.com|ok> :fire: @here"
    model.answers(ask)
    model.gate.set()
    asked = slack.say(channel, new_log(), mention=True)
    answer = answered(slack, channel, asked)
    edited(slack, answer)
    payload = {"text": answer.text, "blocks": answer.blocks}
    (line,) = [
        item
        for block in answer.blocks
        if block["type"] == "context"
        for item in block["elements"]
        if "It would ask" in item["text"]
    ]
    assert line == {"type": "plain_text", "text": f"It would ask: {ask}", "emoji": False}
    assert "evil" not in answer.text
    assert mentions(payload) == []
    assert not [link for link in links(payload) if "evil" in link]
