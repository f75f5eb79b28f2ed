"""Every kind of server is read; the official client reads of ours what our client reads."""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from kb.second_reader.answer import NoAnswer
from kb.second_reader.client import MAX_TOKENS, ModelClient, ModelReply, read_reply
from tests.kb.second_reader.conftest import ChatServer

ANSWER = json.dumps({"causes": {"rank-crash": 0.7}, "quotes": {}, "ask": "哪个 rank 先退出？"})
QUESTION = [{"role": "user", "content": "Why does it hang? Answer in JSON."}]
MESSAGES: dict[str, dict[str, Any]] = {
    "plain": {"content": ANSWER},
    "fenced": {"content": f"```json\n{ANSWER}\n```"},
    "half": {"content": ANSWER[:20]},
    "empty": {"content": ""},
    "thoughts beside it": {"content": ANSWER, "reasoning_content": "Port 7 or rank 3?"},
    "thoughts beside it, newer name": {"content": ANSWER, "reasoning": "Port 7 or rank 3?"},
    "refusal": {"content": None, "refusal": "I cannot help."},
    "a paragraph separator": {"content": "one\u2028two\x85three\ndata: [DONE]\n\n"},
}


@pytest.fixture
def official(server: ChatServer) -> Iterator[openai.OpenAI]:
    """The official client, at our server."""
    with openai.OpenAI(base_url=server.url, api_key="secret-key", max_retries=0) as client:
        yield client


def ask(server: ChatServer, **options: Any) -> ModelReply:
    """What our client reads."""
    client = ModelClient(server.url, "tiny", "secret-key", **options)
    try:
        return client.ask(QUESTION)
    finally:
        client.close()


def refusal(server: ChatServer, **options: Any) -> NoAnswer:
    """Why our client reads nothing."""
    with pytest.raises(NoAnswer) as none:
        ask(server, **options)
    return none.value


# --- with the official client ---------------------------------------------------------------------


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
@pytest.mark.parametrize("always_streams", [False, True])
def test_the_official_client_reads_the_same(
    server: ChatServer, official: openai.OpenAI, message: dict[str, Any], always_streams: bool
) -> None:
    """The words, the model's name and the cost, at once and in pieces."""
    server.message = message
    messages: Any = QUESTION
    whole = official.chat.completions.create(model="tiny", messages=messages)
    stream = official.chat.completions.create(
        model="tiny", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    server.always_streams = always_streams
    ours = ask(server)
    assert whole.usage is not None
    assert chunks[-1].usage == whole.usage
    assert ours.text == (whole.choices[0].message.content or "") == "".join(pieces)
    assert ours.model == whole.model == chunks[0].model
    if not always_streams:
        assert ours.tokens_in == whole.usage.prompt_tokens
        assert ours.tokens_out == whole.usage.completion_tokens
    assert server.keys == ["Bearer secret-key"] * 3


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (404, openai.NotFoundError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ],
)
def test_errors_have_the_form_of_the_api(
    server: ChatServer, official: openai.OpenAI, status: int, error: type[openai.APIStatusError]
) -> None:
    """The official client reads message and parameter out of them."""
    server.status = status
    server.error = server.problem("model", "Not this one.")
    messages: Any = QUESTION
    with pytest.raises(error) as caught:
        official.chat.completions.create(model="tiny", messages=messages)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["message"] == "Not this one."
    assert caught.value.param == "model"


def test_models_are_listed(official: openai.OpenAI) -> None:
    """As people look them up when they set the model's name."""
    assert [model.id for model in official.models.list()] == ["tiny-1"]


# --- what servers refuse to know ------------------------------------------------------------------

# https://github.com/griptape-ai/ComfyUI-Griptape/issues/312
NO_MAX_TOKENS = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead."
)
# https://github.com/johny-b/llmcomp/issues/69
NO_TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0 with this model. "
    "Only the default (1) value is supported."
)


def test_what_a_newer_model_refuses_is_replaced_or_left_out(server: ChatServer) -> None:
    """One try for each, and the next question is right at once."""
    server.refuses = {"max_tokens": NO_MAX_TOKENS, "temperature": NO_TEMPERATURE}
    server.message = {"content": ANSWER}
    client = ModelClient(server.url, "tiny")
    assert client.ask(QUESTION).text == ANSWER
    assert client.ask(QUESTION).text == ANSWER
    client.close()
    options = [
        sorted(set(question) - {"model", "messages", "stream"}) for question in server.questions
    ]
    assert options == [
        ["max_tokens", "response_format", "temperature"],
        ["max_completion_tokens", "response_format", "temperature"],
        ["max_completion_tokens", "response_format"],
        ["max_completion_tokens", "response_format"],
    ]
    assert server.questions[-1]["max_completion_tokens"] > MAX_TOKENS


@pytest.mark.parametrize(
    "error",
    [
        # LM Studio, https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/189
        {"error": "'response_format.type' must be 'json_schema' or 'text'"},
        # FastAPI, where a field is not allowed
        {"detail": [{"loc": ["body", "response_format"], "msg": "Extra inputs", "input": {}}]},
        {"error": {"message": "No.", "param": "response_format.type"}},
        "temperature and response_format cannot both be set",
    ],
    ids=["lm studio", "fastapi", "param", "two are named"],
)
def test_a_refusal_is_understood_in_any_form(server: ChatServer, error: Any) -> None:
    """Whether it names a parameter in a field or in words, the first that is named goes."""
    server.status = 422
    server.error = error
    refusal(server)
    first, second = (set(question) for question in server.questions[:2])
    named = "temperature" if isinstance(error, str) else "response_format"
    assert first - second == {named}


def test_a_question_is_tried_three_times(server: ChatServer) -> None:
    """Whoever refuses everything is left alone."""
    server.refuses = {"model": "Not temperature, not response_format, not max_tokens."}
    assert refusal(server).reason == "status"
    assert len(server.questions) == 3


def test_what_failed_is_not_remembered(server: ChatServer) -> None:
    """One question that was refused takes nothing from the next."""
    client = ModelClient(server.url, "tiny")
    server.refuses = {"model": "response_format"}
    with pytest.raises(NoAnswer):
        client.ask(QUESTION)
    server.refuses = {}
    client.ask(QUESTION)
    client.close()
    assert "response_format" in server.questions[-1]


def test_tries_share_one_deadline(server: ChatServer) -> None:
    """Three slow refusals take no longer than one slow answer."""
    server.refuses = {"model": "temperature"}
    server.delay_s = 0.4
    assert refusal(server, limit_s=0.6).reason == "slow"


def test_no_tools_are_asked_for(server: ChatServer) -> None:
    """Models without them answer too; nothing is streamed."""
    server.message = {"content": ANSWER}
    ask(server)
    (question,) = server.questions
    assert set(question) == {
        "model",
        "messages",
        "stream",
        "temperature",
        "max_tokens",
        "response_format",
    }
    assert question["stream"] is False


# --- refusals -------------------------------------------------------------------------------------

Problem = tuple[int, Any, dict[str, str]]
REFUSALS: dict[str, tuple[Problem, str, dict[str, str]]] = {
    "no key": ((401, None, {}), "key", {"status": "401"}),
    "wrong key": ((403, None, {}), "key", {"status": "403"}),
    # https://github.com/vllm-project/vllm/issues/3486
    "vllm without the model": (
        (404, {"object": "error", "message": "The model `tiny` does not exist."}, {}),
        "no_model",
        {},
    ),
    # https://github.com/netease-youdao/QAnything/issues/555
    "ollama without the model": (
        (404, {"error": {"message": 'model "tiny" not found, try pulling it first'}}, {}),
        "no_model",
        {},
    ),
    "redirect": ((307, None, {"Location": "http://127.0.0.1:1/v1"}), "redirect", {"status": "307"}),
    "busy": ((429, None, {}), "busy", {}),
    "busy until a date": (
        (429, None, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}),
        "busy",
        {},
    ),
    "busy for a while": ((429, None, {"Retry-After": "12"}), "busy_until", {"seconds": "12"}),
    "busy for ever": ((429, None, {"Retry-After": "9e99"}), "busy_until", {"seconds": "86400"}),
    "loading": ((503, None, {"Retry-After": "3"}), "busy_until", {"seconds": "3"}),
    "down": ((503, None, {}), "status", {"status": "503"}),
    # https://github.com/vllm-project/vllm/issues/42474
    "too long for vllm": (
        (400, {"message": "This model's maximum context length is 4096 tokens."}, {}),
        "context",
        {},
    ),
    "too long for llama.cpp": (
        (400, {"error": {"message": "the request exceeds the available context size"}}, {}),
        "context",
        {},
    ),
}


@pytest.mark.parametrize(("problem", "reason", "values"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_says_what_to_do(
    server: ChatServer, problem: Problem, reason: str, values: dict[str, str]
) -> None:
    """Each status by its meaning; no answer of the server is shown."""
    server.status, server.error, server.headers = problem
    none = refusal(server)
    assert (none.reason, none.values) == (reason, values)


def test_a_wrong_address_is_told(server: ChatServer) -> None:
    """One that lacks its version, or goes too far."""
    for url in (server.url.removesuffix("/v1"), f"{server.url}/chat/completions"):
        client = ModelClient(url, "tiny")
        with pytest.raises(NoAnswer, match="no_address"):
            client.ask(QUESTION)
        client.close()


def test_a_redirect_is_not_followed(server: ChatServer) -> None:
    """Neither key nor report go elsewhere."""
    elsewhere = ChatServer()
    server.status = 308
    server.headers = {"Location": f"{elsewhere.url}/chat/completions"}
    assert refusal(server).reason == "redirect"
    elsewhere.close()
    assert elsewhere.questions == []


def test_tls_that_fails_is_told(server: ChatServer) -> None:
    """Here the server speaks none."""
    client = ModelClient(server.url.replace("http:", "https:"), "tiny")
    with pytest.raises(NoAnswer) as none:
        client.ask(QUESTION)
    client.close()
    assert none.value.reason == "tls"
    assert none.value.values["error"]


def test_a_certificate_of_ones_own(
    server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused with its reason, and taken where `SSL_CERT_FILE` names it."""
    files = [str(tmp_path / name) for name in ("key.pem", "cert.pem")]
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", files[0], "-out", files[1]),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files[1], files[0])
    server.use_tls(context)
    server.message = {"content": ANSWER}
    assert "self" in refusal(server).values["error"]
    monkeypatch.setenv("SSL_CERT_FILE", files[1])
    assert ask(server).text == ANSWER


# --- bodies ---------------------------------------------------------------------------------------


def event(delta: dict[str, Any] | None = None, **rest: Any) -> str:
    """One event of a stream."""
    finish = rest.pop("finish", None)
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return f"data: {json.dumps({'choices': choices} | rest)}\n\n"


USAGE = {"prompt_tokens": 9, "completion_tokens": 4}
END = "data: [DONE]\n\n"
WHOLE = {"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}], "usage": USAGE}
READ: dict[str, tuple[str, str]] = {
    "an end without a mark": (event({"content": "{}"}, finish="stop"), "{}"),
    "a mark without an end": (event({"content": "{}"}) + END, "{}"),
    "returns": ((event({"content": "{}"}, finish="stop") + END).replace("\n", "\r\n"), "{}"),
    # https://openrouter.ai/docs/api-reference/streaming
    "comments": (": OPENROUTER PROCESSING\n\n" + event({"content": "{}"}, finish="stop"), "{}"),
    "named events": ("event: message\nid: 1\n" + event({"content": "{}"}, finish="stop"), "{}"),
    "no space": (event({"content": "{}"}, finish="stop").replace("data: ", "data:"), "{}"),
    "an event with a message": (f"data: {json.dumps(WHOLE)}\n\n", "{}"),
    # https://github.com/decolua/9router/issues/3492
    "an answer and an end mark": (json.dumps(WHOLE) + "\n\n" + END, "{}"),
    "blank lines before it": ("\n \n" + json.dumps(WHOLE), "{}"),
    "usage apart": (event({"content": "{}"}, finish="stop") + event(usage=USAGE) + END, "{}"),
    "parts": (
        json.dumps(
            {
                "choices": [
                    {
                        "message": {
                            "content": [
                                {"type": "thinking", "thinking": [{"type": "text", "text": "no"}]},
                                {"type": "text", "text": "{"},
                                {"type": "text", "text": "}"},
                            ]
                        }
                    }
                ]
            }
        ),
        "{}",
    ),
}


@pytest.mark.parametrize(("body", "text"), READ.values(), ids=READ)
def test_bodies_that_are_read(server: ChatServer, body: str, text: str) -> None:
    """As streams of events and answers come, whole or almost; the cost where it is told."""
    server.body = body.encode()
    reply = ask(server)
    assert reply.text == text
    assert (reply.tokens_in, reply.tokens_out) == ((9, 4) if "usage" in body else (0, 0))
    assert reply.without is None


UNREAD: dict[str, tuple[str, str]] = {
    "cut between events": (event({"content": "{"}) + event({"content": "}"}), "broken"),
    "cut within an event": (event({"content": "{"}) + event({"content": "}"})[:30], "broken"),
    # https://github.com/block/goose/pull/8031
    "an error on the way": (
        event({"content": "{"}) + 'data: {"error": {"message": "out of memory"}}\n\n' + END,
        "broken",
    ),
    "an error of vllm": (
        event({"content": "{"}) + 'data: {"object": "error", "message": "x"}\n\n' + END,
        "broken",
    ),
    "an end by error": (event({"content": "{"}) + event({}, finish="error"), "broken"),
    "nothing": ("", "no_chat"),
    "a page": ("<html>data: sign in</html>", "no_chat"),
    "an end mark alone": (END, "no_chat"),
    "no choices": ('{"choices": []}', "no_chat"),
    "choices that are none": ('{"choices": {"a": 1}}', "no_chat"),
    "a list": ("[1, 2]", "no_chat"),
    "a message that is none": ('{"choices": [{"message": "hello"}]}', "no_chat"),
    "parts that are none": ('{"choices": [{"message": {"content": ["a"]}}]}', "no_chat"),
    "an abyss": ('{"choices":' + "[" * 100_000, "no_chat"),
}


@pytest.mark.parametrize(("body", "reason"), UNREAD.values(), ids=UNREAD)
def test_bodies_that_are_no_answer(server: ChatServer, body: str, reason: str) -> None:
    """With the reason; half an answer is none."""
    server.body = body.encode()
    assert refusal(server).reason == reason


@pytest.mark.parametrize(
    ("message", "finish", "without"),
    [
        ({"content": None, "reasoning_content": ANSWER}, "stop", "empty"),
        ({"content": "", "reasoning": ANSWER}, "stop", "empty"),
        ({"content": "  "}, "stop", "empty"),
        ({"content": None, "tool_calls": []}, "tool_calls", "empty"),
        ({"content": None, "refusal": "no"}, "stop", "refused"),
        ({"content": ""}, "content_filter", "refused"),
        ({"content": None, "reasoning": ANSWER}, "length", "length"),
        ({"content": ANSWER[:20]}, "length", "length"),
        ({"content": ANSWER}, "stop", None),
    ],
)
@pytest.mark.parametrize("streams", [False, True])
def test_why_there_may_be_no_answer(
    server: ChatServer, message: dict[str, Any], finish: str, without: str | None, streams: bool
) -> None:
    """Thoughts are never the answer; what the server says of the end is kept."""
    server.message, server.finish, server.always_streams = message, finish, streams
    reply = ask(server)
    assert reply.without == without
    assert reply.text == (message["content"] or "")


@pytest.mark.parametrize(
    ("field", "instead"),
    [
        ('"usage"', '"usage": 7, "x"'),
        ('"usage"', '"usage": ["prompt_tokens"], "x"'),
        ('"prompt_tokens": 700', '"prompt_tokens": "many"'),
        ('"prompt_tokens": 700', '"prompt_tokens": -7'),
        ('"model": "tiny-1"', '"model": {"a": 1}'),
        ('"finish_reason": "stop"', '"finish_reason": [1]'),
    ],
)
def test_a_strange_field_costs_no_answer(server: ChatServer, field: str, instead: str) -> None:
    """The words are read whatever else is wrong."""
    _, whole = server.reply_to({}, "/v1/chat/completions")
    body = json.dumps(whole)
    assert field in body
    reply = read_reply(body.replace(field, instead).encode(), "tiny")
    assert (reply.text, reply.without) == ("{}", None)
    assert reply.model == ("tiny" if "model" in field else "tiny-1")
    assert reply.tokens_in == (0 if "usage" in field or "tokens" in field else 700)
