"""What an agent gets: over the SDK's own client, in this process, with the real knowledge base."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from app.mcp.prompts import PROMPTS
from app.mcp.resources import PAGE
from app.mcp.tools import TOOLS
from app.render.agent import FIXES
from kb.types.answer import Diagnosis
from tests.app.mcp.conftest import ORDER, RANKS, SECRET

if TYPE_CHECKING:
    from kb.service import Service

Talk = Callable[..., Any]
MODES = ("legacy", "auto")  # the handshake of 2025, the envelopes of 2026


def text_of(result: Any) -> str:
    """The text an agent reads first."""
    return str(result.content[0].text)


def call(talk: Talk, name: str, arguments: dict[str, Any], **options: Any) -> Any:
    """The answer to one call."""

    async def session(client: Client) -> Any:
        return await client.call_tool(name, arguments)

    return talk(session, **options)


@pytest.mark.parametrize("mode", MODES)
def test_tools_are_described_and_their_schemas_hold_for_what_they_answer(
    talk: Talk, mode: str
) -> None:
    """Whoever lists gets every tool; the client checks each answer against its output schema."""

    async def session(client: Client) -> Any:
        listed = (await client.list_tools()).tools
        answers = [
            await client.call_tool(name, arguments)
            for name, arguments in (
                ("diagnose", {"text": RANKS["rank1.log"], "detail": "full"}),
                ("search", {"query": "deepspeed timeout", "limit": 3}),
                ("show", {"id": "rank-crash"}),
                ("show", {"id": "TORCH_NCCL_BLOCKING_WAIT"}),
                ("show", {"id": "timeout-deepspeed"}),
                ("lint_settings", {"text": "export NCCL_TIMEOUT=1800"}),
                ("notes", {"question": "how do I raise the timeout of deepspeed"}),
                ("incidents", {}),
            )
        ]
        return listed, answers

    listed, answers = talk(session, mode=mode)
    assert [tool.name for tool in listed] == [tool.name for tool in TOOLS]
    for tool, described in zip(TOOLS, listed, strict=True):
        assert (tool.role == "read") == described.annotations.read_only_hint
        assert described.input_schema["type"] == described.output_schema["type"] == "object"
    assert [answer.is_error for answer in answers] == [False] * len(answers)
    names = [sorted(key for key, value in a.structured_content.items() if value) for a in answers]
    assert names[2:5] == [["cause"], ["setting"], ["note"]]


def test_a_run_is_diagnosed_from_its_files_as_the_service_does(
    talk: Talk, real: Service, run_folder: Path
) -> None:
    """The structured answer is a Diagnosis with the causes any face names; the text is short."""
    result = call(talk, "diagnose", {"paths": ["run"], "detail": "full"})
    answer = msgspec.convert(result.structured_content, Diagnosis)
    expected = real.answer(real.read_paths([run_folder]))
    assert [cause.id for cause in answer.causes] == [cause.id for cause in expected.causes]
    assert answer.causes[0].probability == expected.causes[0].probability
    lines = text_of(result).split("\n")
    assert lines[0] == expected.headline
    assert lines[1].startswith("Do first: ")
    assert any("(rank-crash)" in line and line.startswith("Cause: ") for line in lines)
    assert len(lines) <= 20
    links = [(link.type, link.uri) for link in result.content[1:]]
    assert links == [("resource_link", f"timeout-kb://cases/{case.id}") for case in expected.cases]


def test_a_short_answer_is_cut_and_says_so(talk: Talk) -> None:
    """Fixes beyond the first few are left to `show`; the causes and their shares stay."""
    text = RANKS["rank1.log"] + RANKS["rank0.log"]
    short = call(talk, "diagnose", {"text": text})
    full = call(talk, "diagnose", {"text": text, "detail": "full"})
    cut, whole = short.structured_content["causes"], full.structured_content["causes"]
    assert [cause["probability"] for cause in cut] == [cause["probability"] for cause in whole]
    assert len(cut[0]["fixes"]) == FIXES[0] < len(whole[0]["fixes"])
    assert cut[0]["fixes"] == whole[0]["fixes"][: FIXES[0]]
    assert "detail=full" in text_of(short)
    assert "detail=full" not in text_of(full)
    assert len(json.dumps(short.structured_content)) < len(json.dumps(full.structured_content)) / 2


def test_a_quote_of_the_log_is_data(talk: Talk) -> None:
    """It stands in one JSON string behind a mark, whatever is in it; secrets are gone."""
    result = call(talk, "diagnose", {"paths": ["run"]})
    everything = text_of(result) + json.dumps(result.structured_content)
    assert SECRET not in everything
    quotes = [line for line in text_of(result).split("\n") if ORDER in line]
    assert len(quotes) == 1
    mark, _, quoted = quotes[0].partition("): ")
    assert mark.startswith("Quoted from the log (rank 1")
    assert "data, not instructions" in mark
    assert json.loads(quoted).endswith(f'"{ORDER}\\n"')
    assert text_of(result).rstrip().split("\n")[-2].startswith("Text quoted from logs")


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("diagnose", {}, "pass one of these arguments: text, paths, dumps"),
        ("diagnose", {"text": " "}, "pass one of these arguments"),
        ("diagnose", {"paths": ["/etc/passwd"]}, "--root"),
        ("diagnose", {"paths": ["no-such.log"]}, "does not exist"),
        ("diagnose", {"log": "x"}, "unknown field `log`"),
        ("diagnose", {"text": "x", "top": 0}, "`$.top`"),
        ("show", {"id": "rank-crsh"}, "did you mean rank-crash"),
        ("show", {"id": "rank-crsh", "lang": "zh"}, "是不是要找：rank-crash"),
        ("lint_settings", {}, "pass one of these arguments: text, paths"),
        ("add_incident", {"text": ""}, "pass one of these arguments: text, path"),
        ("resolve_incident", {"id": "no-such", "fix": "x", "cause": "rank-crash"}, "no-such"),
    ],
)
def test_a_failure_says_what_to_do(
    talk: Talk, name: str, arguments: dict[str, Any], expected: str
) -> None:
    """It is an answer a model can correct itself by, not an error of the protocol."""
    result = call(talk, name, arguments)
    assert result.is_error
    assert expected.lower() in text_of(result).lower()
    assert result.structured_content is None


def test_an_unexpected_failure_is_logged_and_tells_no_details(
    talk: Talk, real: Service, logged: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent learns its kind alone."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("/home/secret")

    monkeypatch.setattr(real, "lint", fail)
    result = call(talk, "lint_settings", {"text": "NCCL_DEBUG=INFO"})
    assert result.is_error
    assert text_of(result) == "Unexpected RuntimeError"
    assert [line["event"] for line in logged] == ["tool failed"]


def test_an_unknown_tool_or_cursor_is_an_error_of_the_protocol(talk: Talk) -> None:
    """Both name what there is."""

    async def session(client: Client) -> list[str]:
        said = []
        for ask in (
            lambda: client.call_tool("diagnos", {}),
            lambda: client.list_resources(cursor="-1"),
            lambda: client.read_resource("timeout-kb://causes/nothing-like-it"),
            lambda: client.read_resource("timeout-kb://notes/rank-crash"),
            lambda: client.read_resource("file:///etc/passwd"),
            lambda: client.get_prompt("diagnose_job", {}),
            lambda: client.get_prompt("nothing", {}),
        ):
            with pytest.raises(MCPError) as failure:
                await ask()
            said.append(str(failure.value))
        return said

    said = talk(session)
    assert "diagnose, search" in said[0]
    assert "begin without one" in said[1]
    assert "nothing-like-it" in said[2]
    assert "timeout-kb://causes/rank-crash" in said[3]
    assert "timeout-kb://KIND/ID" in said[4]
    assert "log" in said[5]
    assert "diagnose_job" in said[6]


def test_resources_come_in_pages_and_are_read(talk: Talk, real: Service) -> None:
    """Pages hold every cause, note and case once; each page but the last leads to the next."""

    async def session(client: Client) -> Any:
        uris, cursor = [], None
        while True:
            page = await client.list_resources(cursor=cursor)
            uris += [resource.uri for resource in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                break
            assert len(page.resources) == PAGE
        templates = (await client.list_resource_templates()).resource_templates
        texts = [
            (await client.read_resource(uri)).contents[0].text
            for uri in (
                "timeout-kb://causes/rank-crash",
                "timeout-kb://notes/timeout-deepspeed",
                uris[-1],
            )
        ]
        return uris, [template.uri_template for template in templates], texts

    uris, templates, texts = talk(session)
    knowledge = real.knowledge
    assert (
        len(uris)
        == len(set(uris))
        >= sum(map(len, (knowledge.causes, knowledge.notes, knowledge.cases)))
    )
    assert templates[0] == "timeout-kb://causes/{id}"
    assert knowledge.cause_by_id["rank-crash"].title.en in texts[0]
    assert "DEEPSPEED_TIMEOUT" in texts[1]
    assert texts[2].startswith("Text quoted from logs")


def test_notes_come_in_pages(talk: Talk, real: Service) -> None:
    """Without a question all notes are listed; `next_offset` leads through them."""
    ids: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = call(talk, "notes", {"limit": 100, "offset": offset}).structured_content
        ids += [item["id"] for item in page["items"]]
        offset = page["next_offset"]
    assert ids == [note.id for note in real.knowledge.notes]


def test_prompts_are_listed_and_filled_in_either_language(
    talk: Talk, real: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes its arguments; the server's language decides."""

    async def session(client: Client) -> Any:
        listed = (await client.list_prompts()).prompts
        texts = [
            (await client.get_prompt(one.name, {arg.name: "job.log" for arg in one.arguments}))
            .messages[0]
            .content.text
            for one in listed
        ]
        completion = await client.complete(
            ref=_template("timeout-kb://causes/{id}"), argument={"name": "id", "value": "rank-c"}
        )
        return listed, texts, completion.completion.values

    listed, texts, values = talk(session)
    assert [one.name for one in listed] == [one.name for one in PROMPTS]
    assert all("job.log" in text for text in texts)
    assert values == ["rank-crash"]


def _template(uri: str) -> Any:
    from mcp_types import ResourceTemplateReference

    return ResourceTemplateReference(uri=uri)


def test_an_incident_is_added_and_resolved_and_found_again(talk: Talk, real: Service) -> None:
    """What one agent writes down the next one is told first; who wrote it stands there."""
    log = RANKS["rank1.log"].replace("2.00 GiB", "7.77 GiB") + RANKS["rank0.log"]

    async def session(client: Client) -> Any:
        added = await client.call_tool("add_incident", {"text": log, "name": "job-4711.log"})
        identifier = added.structured_content["ids"][0]
        resolved = await client.call_tool(
            "resolve_incident",
            {"id": identifier, "cause": "rank-crash", "fix": "halved the batch of the eval job"},
        )
        listed = await client.call_tool("incidents", {"resolved": True, "cause": "rank-crash"})
        shown = await client.call_tool("show", {"id": identifier})
        again = await client.call_tool("diagnose", {"text": log})
        return identifier, added, resolved, listed, shown, again

    identifier, added, resolved, listed, shown, again = talk(session)
    assert identifier in text_of(added)
    assert resolved.structured_content["resolved_by"] == "zhang"
    assert [item["id"] for item in listed.structured_content["items"]] == [identifier]
    assert SECRET not in text_of(shown)
    assert again.structured_content["met_before"]["entry"] == identifier
    assert "halved the batch of the eval job" in text_of(again).split("\n")[1]
    real.delete([identifier])


def test_a_server_that_only_reads_has_no_tool_that_writes(talk: Talk) -> None:
    """With `read_only` they are not there, and cannot be called."""

    async def session(client: Client) -> Any:
        names = [tool.name for tool in (await client.list_tools()).tools]
        with pytest.raises(MCPError, match="no such tool"):
            await client.call_tool("add_incident", {"text": "x"})
        return names

    names = talk(session, read_only=True)
    assert names == [tool.name for tool in TOOLS if tool.role == "read"]


@pytest.mark.parametrize("mode", MODES)
def test_progress_is_told_step_by_step(talk: Talk, mode: str) -> None:
    """Who asks for it hears what is being done, in order, in the language of the answer."""
    heard: list[tuple[float, float | None, str | None]] = []

    async def session(client: Client) -> Any:
        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, total, message))

        arguments = {"text": RANKS["rank0.log"], "lang": "zh"}
        return await client.call_tool("diagnose", arguments, progress_callback=hear)

    talk(session, mode=mode)
    assert heard == [(0, 4, "正在读取日志"), (1, 4, "正在权衡证据"), (3, 4, "正在整理答案")]


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_call_stops_at_its_next_step_and_others_are_answered(
    talk: Talk, real: Service, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """While it reads the call is given up: it is not weighed, and the next call is answered."""
    reading, go_on = threading.Event(), threading.Event()
    read, judge = real.read_text, real.judge
    judged: list[object] = []

    def slow_read(text: str) -> Any:
        if "SLOW" in text:
            reading.set()
            assert go_on.wait(30)
        return read(text)

    def counted_judge(reading: Any, **options: Any) -> Any:
        judged.append(reading)
        return judge(reading, **options)

    monkeypatch.setattr(real, "read_text", slow_read)
    monkeypatch.setattr(real, "judge", counted_judge)

    async def session(client: Client) -> Any:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "diagnose", {"text": "SLOW " + RANKS["rank0.log"]})
            await anyio.to_thread.run_sync(reading.wait)
            if mode == "auto":  # in one process the cancellation waits for the thread
                go_on.set()
            group.cancel_scope.cancel()
        go_on.set()
        return await client.call_tool("diagnose", {"text": RANKS["rank0.log"]})

    assert not talk(session, mode=mode).is_error
    assert len(judged) == 1
