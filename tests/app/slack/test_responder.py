"""How a request is answered: what is read, what is posted where, and what Slack may refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import anyio
import pytest
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.errors import SlackApiError

from app.slack.blocks.primitives import SlackMessage, notice
from app.slack.bot import BotContext, Jobs
from app.slack.requests import ChannelSettings, SlackFile, SlackRequest
from app.slack.responder import answer_request
from app.slack.workspaces import Workspace
from kb.knowledge.labels import Words
from kb.settings import Settings
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import Language
from tests.event_loop import run_coroutine

TIMEOUT = "Watchdog caught collective operation timeout"


@dataclass
class FakeCalls:
    """Answers everything with `answer`; a text is a timeout when it says so."""

    labels: dict[str, Bilingual]
    settings: ChannelSettings = field(default_factory=ChannelSettings)
    answer: SlackMessage = field(default_factory=lambda: notice("the answer"))
    known: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    questions: list[tuple[str, str]] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    failure: Exception | None = None

    def channel(self, team: str, channel: str) -> ChannelSettings:
        """The same everywhere."""
        return self.settings

    def first_time(self, key: str) -> bool:
        """Whether it was not here before."""
        new = key not in self.taken
        self.taken.add(key)
        return new

    def knows(self, conversation: str) -> bool:
        """Whether it is one of `known`."""
        return conversation in self.known

    def forget(self, conversation: str) -> None:
        """Note it."""
        self.forgotten.append(conversation)

    def has_timeout(self, text: str) -> bool:
        """Whether it says so."""
        return TIMEOUT in text

    def set_language(self, channel: ChannelSettings) -> Language | None:
        """That of the channel."""
        return channel.language or None

    def language(self, text: str, channel: ChannelSettings) -> Language:
        """English."""
        return channel.language or "en"

    def words(self, language: Language) -> Words:
        """The shipped ones."""
        return Words(self.labels, language)

    def reply(
        self, text: str, *, conversation: str, language: Language | None, can_edit: bool
    ) -> SlackMessage:
        """Note what was asked."""
        self.questions.append((text, conversation))
        if self.failure:
            raise self.failure
        return self.answer


@dataclass
class FakeClient:
    """Notes the calls; `refuse` says which are refused how."""

    parent: dict[str, Any] = field(default_factory=dict)
    file: dict[str, Any] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refuse: Callable[[str, dict[str, Any]], str] = lambda _method, _arguments: ""

    def __getattr__(self, method: str) -> Any:
        """A method of the Web API."""

        async def call(**arguments: Any) -> dict[str, Any]:
            self.calls.append((method, arguments))
            error = self.refuse(method, arguments)
            if error:
                raise SlackApiError("refused", {"error": error})
            if method == "conversations_replies":
                return {"messages": [self.parent]}
            if method == "files_info":
                return {"file": self.file}
            return {"ts": f"9.{len(self.calls)}"}

        return call

    def called(self, method: str) -> list[dict[str, Any]]:
        """The calls of one method."""
        return [arguments for name, arguments in self.calls if name == method]


@dataclass
class FakeWorkspaces:
    """One workspace; answers through a response URL are noted."""

    workspace: Workspace
    responses: list[dict[str, Any]] = field(default_factory=list)

    def find(self, team: str) -> Workspace | None:
        """The one, by its team."""
        return self.workspace if team == self.workspace.identity.team_id else None

    def webhook(self, url: str) -> Any:
        """What answers through `url`."""
        workspaces = self

        @dataclass(frozen=True)
        class Sent:
            status_code: int = 200

        class Webhook:
            async def send(self, **arguments: Any) -> Sent:
                workspaces.responses.append(arguments | {"url": url})
                return Sent()

        return Webhook()


@dataclass
class Scene:
    """A desk, a Slack, and the bot's answering between them."""

    calls: FakeCalls
    client: FakeClient
    workspaces: FakeWorkspaces
    logged: list[Any]

    def answer(self, *requests: SlackRequest) -> None:
        """Let them be answered, one after the other, to the end."""

        async def run() -> None:
            jobs = Jobs(anyio.CapacityLimiter(1))
            context = BotContext(
                calls=self.calls,  # type: ignore[arg-type]
                workspaces=self.workspaces,  # type: ignore[arg-type]
                jobs=jobs,
                settings=Settings(),
            )
            for number, request in enumerate(requests):
                key = f"{request.origin}:{request.ts or number}"
                jobs.start(partial(answer_request, context, replace(request, key=key)))
            await jobs.close()

        run_coroutine(run())

    @property
    def reactions(self) -> list[str]:
        """Names of the reactions put, in order."""
        return [call["name"] for call in self.client.called("reactions_add")]


@pytest.fixture
def scene(labels: dict[str, Bilingual], logged: list[Any]) -> Scene:
    """A fresh one."""
    client = FakeClient()
    identity = AuthorizeResult(enterprise_id=None, team_id="T1", bot_id="B1", bot_user_id="UBOT")
    workspace = Workspace(identity=identity, client=client)
    return Scene(
        calls=FakeCalls(labels=labels),
        client=client,
        workspaces=FakeWorkspaces(workspace=workspace),
        logged=logged,
    )


def mention(text: str, *, thread: str = "") -> SlackRequest:
    """Somebody mentions the bot."""
    return SlackRequest(
        team="T1", channel="C1", user="U1", origin="mention", text=text, ts="2.0", thread=thread
    )


def test_a_mention_is_marked_read_and_answered_in_its_thread(scene: Scene) -> None:
    """Eyes and a first word, then the answer in the first word's place, then a check mark."""
    scene.answer(mention(f"help\n{TIMEOUT}"))
    posted, updated = scene.client.called("chat_postMessage"), scene.client.called("chat_update")
    assert [call["thread_ts"] for call in posted] == ["2.0"]
    assert [call["text"] for call in posted + updated] == ["Reading the log …", "the answer"]
    assert updated[0]["ts"].startswith("9.")
    assert scene.reactions == ["eyes", "white_check_mark"]
    assert scene.client.called("reactions_remove")[0]["name"] == "eyes"
    for call in posted + updated:
        assert (call["parse"], call["link_names"]) == ("none", False)
    assert (posted[0]["unfurl_links"], posted[0]["unfurl_media"]) == (False, False)


def test_a_question_under_somebodys_log_is_about_that_log(scene: Scene) -> None:
    """In a thread the bot does not know, the first message comes along, its lines first."""
    scene.client.parent = {"user": "U2", "text": f"{TIMEOUT} &lt;1&gt;"}
    scene.answer(mention("what happened here?", thread="1.0"))
    assert scene.calls.questions == [(f"{TIMEOUT} <1>\n\nwhat happened here?", "slack:T1:C1:1.0")]


@pytest.mark.parametrize("case", ["own log", "known thread"])
def test_the_first_message_is_left_where_it_is_not_meant(scene: Scene, case: str) -> None:
    """Who brings a log, or goes on in a thread, does not ask about the first message."""
    text = TIMEOUT if case == "own log" else "why?"
    if case == "known thread":
        scene.calls.known.add("slack:T1:C1:1.0")
    scene.answer(mention(text, thread="1.0"))
    assert scene.client.called("conversations_replies") == []
    assert scene.calls.questions == [(text, "slack:T1:C1:1.0")]


def test_commands_where_the_bot_is_no_member_are_answered_apart(scene: Scene) -> None:
    """The person gets the answer through the command's own address; no two share a talk."""
    scene.client.refuse = lambda method, _: "not_in_channel" if method == "chat_postMessage" else ""
    requests = [
        SlackRequest(
            team="T1",
            channel="C9",
            user="U1",
            origin="command",
            text=f"{TIMEOUT}\n{number}",
            response_url=f"https://hooks.slack.com/commands/{number}",
        )
        for number in range(2)
    ]
    scene.answer(*requests)
    answers = [call for call in scene.workspaces.responses if call["text"] == "the answer"]
    assert sorted(call["url"][-1] for call in answers) == ["0", "1"]
    assert {call["response_type"] for call in answers} == {"ephemeral"}
    conversations = {conversation for _, conversation in scene.calls.questions}
    assert len(conversations) == 2


@pytest.mark.parametrize(
    ("origin", "thread"), [("mention", "2.0"), ("direct", None), ("command", "9.1")]
)
def test_a_file_goes_where_the_answer_stands(scene: Scene, origin: str, thread: str | None) -> None:
    """In the thread, in the conversation, or in the thread a command's answer begins."""
    scene.calls.answer = replace(scene.calls.answer, report="全部")
    ts = "" if origin == "command" else "2.0"
    request = replace(mention(f"help\n{TIMEOUT}"), origin=origin, ts=ts)  # type: ignore[arg-type]
    scene.answer(request)
    (file,) = scene.client.called("files_upload_v2")
    assert (file["channel"], file["thread_ts"]) == ("C1", thread)
    assert file["content"] == "全部".encode()


def test_a_refused_file_leaves_the_answer_and_a_word_for_the_admin(scene: Scene) -> None:
    """The check mark comes all the same; the log names the missing scope."""
    scene.calls.answer = replace(scene.calls.answer, report="x")
    scene.client.refuse = lambda method, _: "missing_scope" if "upload" in method else ""
    scene.answer(mention(TIMEOUT))
    assert scene.reactions == ["eyes", "white_check_mark"]
    (line,) = [item for item in scene.logged if item["event"] == "slack file refused"]
    assert (line["error"], "files:write" in line["todo"]) == ("missing_scope", True)


def test_blocks_slack_refuses_become_text(scene: Scene) -> None:
    """The answer arrives as its text, without the blocks."""
    scene.client.refuse = lambda method, arguments: (
        "invalid_blocks" if method == "chat_update" and arguments["blocks"] else ""
    )
    scene.answer(mention(TIMEOUT))
    assert [bool(call["blocks"]) for call in scene.client.called("chat_update")] == [True, False]
    assert scene.reactions[-1] == "white_check_mark"


def test_an_answer_whose_place_is_gone_is_posted_anew(scene: Scene) -> None:
    """Somebody deleted the first word: the answer still comes."""
    scene.client.refuse = lambda method, _: "message_not_found" if method == "chat_update" else ""
    scene.answer(mention(TIMEOUT))
    assert scene.client.called("chat_postMessage")[-1]["text"] == "the answer"


def test_an_unexpected_failure_is_told_and_logged_without_secrets(scene: Scene) -> None:
    """The person reads that it failed, the log has the traceback, redacted."""
    token = "xoxb-" + "1234567890-abcdefghij"
    scene.calls.failure = RuntimeError(f"called with {token}")
    scene.answer(mention(TIMEOUT))
    assert "Something unexpected" in scene.client.called("chat_update")[-1]["text"]
    assert scene.reactions == ["eyes", "warning"]
    failures = [line for line in scene.logged if line["event"] == "slack job failed"]
    assert [line["exc_info"] for line in failures] == [True]


def test_a_file_of_a_shared_channel_is_asked_for_and_its_address_checked(scene: Scene) -> None:
    """Such a file comes without an address; the one Slack tells is no more believed than others."""
    scene.client.file = {"id": "F1", "name": "a.log", "url_private": "https://evil.example/a.log"}
    file = SlackFile(id="F1", name="a.log")
    scene.answer(replace(mention(""), files=(file,)))
    assert scene.client.called("files_info") == [{"file": "F1"}]
    shown = scene.client.called("chat_update")[-1]["blocks"][0]["text"]["text"]
    assert "a.log is not at files.slack.com but at evil.example" in shown
    assert scene.reactions == ["eyes", "warning"]
