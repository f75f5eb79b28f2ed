"""One question to an address that speaks the OpenAI chat API: a vendor's, vLLM, SGLang, Ollama.

Tried again is only what a server refuses to know, without it: the first answer of the product
stands meanwhile, and the model's is a gain or none. How servers differ:

- LM Studio refuses this `response_format`,
  https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/189;
- newer models of OpenAI take `max_completion_tokens` for `max_tokens`,
  https://github.com/griptape-ai/ComfyUI-Griptape/issues/312,
  and no temperature, https://github.com/johny-b/llmcomp/issues/69;
- some stream unless `stream` is false, https://github.com/unslothai/unsloth/issues/5047,
  some always, https://github.com/sgl-project/mini-sglang/issues/51, some put the end of a stream
  behind a whole answer, https://github.com/decolua/9router/issues/3492;
- thoughts come beside the answer (`reasoning_content`, now `reasoning`,
  https://docs.vllm.ai/en/v0.11.2/features/reasoning_outputs/) or within it;
- an answer that is no JSON may come as spaces, https://api-docs.deepseek.com/guides/json_mode.md.
"""

from __future__ import annotations

import json
import re
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kb.errors import MissingExtraError
from kb.retry_after import parse_retry_after
from kb.second_reader.answer import NoAnswer, Reason
from kb.second_reader.prompt import Message

if TYPE_CHECKING:
    import httpx

MAX_REPLY = 1 << 22  # bytes; a stream takes some 300 a token
CONNECT_S = 5.0
MAX_TOKENS = 1500  # of the reply; models that think first need some
MAX_WAIT_S = 86_400  # nobody is told to come back later than that
TRIES = 3  # of one question, in its time
OPTIONS: Mapping[str, Any] = {
    "temperature": 0,
    "max_tokens": MAX_TOKENS,
    "response_format": {"type": "json_object"},
}
# Who wants the other name counts thoughts too.
REPLACED: Mapping[str, tuple[str, Any]] = {
    "max_tokens": ("max_completion_tokens", 4 * MAX_TOKENS),
}
NOT_UNDERSTOOD = (400, 415, 422)
_PARAM = re.compile(r'"param"\s*:\s*"(\w+)')
_CONTEXT = re.compile(r"context.{0,12}(?:length|size|window)", re.IGNORECASE)
USAGE = ("prompt_tokens", "completion_tokens")
_LINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """A model's words, and what they cost in tokens (0 where the server does not tell).

    Attributes:
        text: the answer; what the server keeps apart as thoughts is left out.
        model: as the server names it.
        tokens_in: of the question.
        tokens_out: of the reply with its thoughts.
        without: why there may be no JSON in the text, None where nothing explains it.
    """

    text: str
    model: str
    tokens_in: int = 0
    tokens_out: int = 0
    without: Reason | None = None


class ModelClient:
    """Asks one model; safe for use by several threads."""

    def __init__(self, base_url: str, model: str, key: str = "", *, limit_s: float = 30) -> None:
        """Ask `model` at `base_url`, which ends before ``/chat/completions``.

        Raises:
            MissingExtraError: httpx is not installed.
        """
        try:
            import httpx
        except ImportError as error:
            raise MissingExtraError(
                "the second reader needs httpx, which is not installed",
                todo="pip install 'timeout-kb[llm]'",
            ) from error
        self.model = model
        self._limit_s = limit_s
        self._options = OPTIONS  # those the server took last
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(
            base_url=base_url.rstrip("/") + "/",
            headers=headers,
            timeout=httpx.Timeout(limit_s, connect=min(CONNECT_S, limit_s)),
            follow_redirects=False,  # the key goes to the address that was set, and nowhere else
        )

    def ask(self, messages: Sequence[Message]) -> ModelReply:
        """The model's reply.

        Raises:
            NoAnswer: it cannot be reached, refuses, is slow, or its reply is none.
        """
        deadline = time.monotonic() + self._limit_s
        options = self._options
        question = {"model": self.model, "messages": list(messages), "stream": False}
        for _ in range(TRIES):
            response, content = self._post(question | dict(options), deadline)
            if response.status_code == 200:
                self._options = options
                return read_reply(content, self.model)
            fewer = _fewer(options, content.decode("utf-8", "replace"))
            if response.status_code not in NOT_UNDERSTOOD or fewer == options:
                break
            options = fewer
        raise self._refusal(response, content.decode("utf-8", "replace"))

    def _post(self, body: Mapping[str, Any], deadline: float) -> tuple[httpx.Response, bytes]:
        """The response and its body; the whole of it must have come by `deadline`."""
        import httpx

        left = deadline - time.monotonic()
        if left <= 0:
            raise NoAnswer("slow")
        try:
            with self._http.stream(
                "POST", "chat/completions", json=body, timeout=httpx.Timeout(left)
            ) as response:
                return response, _limited(response, deadline)
        except httpx.TimeoutException as error:
            raise NoAnswer("slow") from error
        except (httpx.RemoteProtocolError, httpx.ReadError) as error:
            raise NoAnswer("broken") from error
        except httpx.HTTPError as error:
            if tls := _tls_fault(error):
                raise NoAnswer("tls", error=tls) from error
            raise NoAnswer("unreachable", error=type(error).__name__) from error

    def _refusal(self, response: httpx.Response, text: str) -> NoAnswer:
        """Why there is no answer, and what to do about it."""
        status = response.status_code
        wait_s = parse_retry_after(response.headers.get("Retry-After", ""))
        if status == 429 or (status == 503 and wait_s is not None):
            if wait_s is None:
                return NoAnswer("busy")
            return NoAnswer("busy_until", seconds=f"{min(wait_s, MAX_WAIT_S):.0f}")
        if status in (401, 403):
            return NoAnswer("key", status=str(status))
        if status == 404:
            return NoAnswer("no_model" if self.model in text else "no_address")
        if 300 <= status < 400:
            return NoAnswer("redirect", status=str(status))
        if status in (*NOT_UNDERSTOOD, 413) and _CONTEXT.search(text):
            return NoAnswer("context")
        return NoAnswer("status", status=str(status))

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()


def _fewer(options: Mapping[str, Any], refusal: str) -> Mapping[str, Any]:
    """The options without the one that a refusal names, or as they are where there is none left.

    Older servers name none; it is `response_format` that they do not know.
    """
    named = _PARAM.findall(refusal)
    named += sorted((name for name in options if name in refusal), key=refusal.index)
    for name in (*named, "response_format"):
        if name in options:
            rest = {other: value for other, value in options.items() if other != name}
            return rest | dict([REPLACED[name]] if name in REPLACED else [])
    return options


def _tls_fault(error: BaseException | None) -> str:
    """What TLS complains about, empty where something else failed."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    if error is None:
        return ""
    return getattr(error, "verify_message", "") or error.reason or type(error).__name__


def _limited(response: httpx.Response, deadline: float) -> bytes:
    content = bytearray()
    for piece in response.iter_bytes():
        content += piece
        if len(content) > MAX_REPLY:
            raise NoAnswer("long")
        if time.monotonic() > deadline:  # a body that comes drop by drop never times out by itself
            raise NoAnswer("slow")
    return bytes(content)


def read_reply(content: bytes, model: str) -> ModelReply:
    """The reply in a body, whole or as a stream of events; `model` where it names none.

    Raises:
        NoAnswer: it is not the chat API's, or broke off.
    """
    body = content.decode("utf-8", "replace")
    try:
        events = list(_events(body))
        if any(event.get("error") or event.get("object") == "error" for event in events):
            raise NoAnswer("broken")
        choices = [choice for event in events for choice in event["choices"][:1]]
        messages = [choice.get("delta", choice.get("message")) or {} for choice in choices]
        text = "".join(_words(message.get("content")) for message in messages)
        is_refused = any(message.get("refusal") for message in messages)
        finish = _last(choice.get("finish_reason") for choice in choices)
        usage = _last(event.get("usage") for event in events)
        usage = usage if isinstance(usage, Mapping) else {}
        tokens_in, tokens_out = (_count(usage.get(name)) for name in USAGE)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise NoAnswer("no_chat") from error
    if not messages:
        raise NoAnswer("no_chat")
    is_stream = all("delta" in choice for choice in choices)
    if is_stream and finish in (None, "error") and not body.rstrip().endswith("[DONE]"):
        raise NoAnswer("broken")
    without: Reason | None = None if text.strip() else "empty"
    if finish == "length":
        without = "length"
    elif is_refused or finish == "content_filter":
        without = "refused"
    named = _last(event.get("model") for event in events)
    return ModelReply(
        text=text,
        model=named if isinstance(named, str) else model,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        without=without,
    )


def _events(body: str) -> Iterator[Any]:
    """The objects of a body: one of a plain answer; several of a stream, up to where it was cut."""
    body = body.lstrip("\ufeff \t\r\n")
    if body.startswith("{"):
        yield json.JSONDecoder().raw_decode(body)[0]  # an end of stream may follow
        return
    for line in _LINE.split(body):
        field, _, value = line.partition(":")
        if field == "data":
            try:
                yield json.loads(value)
            except ValueError:  # the end mark, or half an event
                return


def _last(values: Iterable[Any]) -> Any:  # noqa: ANN401 - what a foreign server sent
    return next((value for value in reversed(list(values)) if value), None)


def _words(content: object) -> str:
    """The text of a message, which may come in parts."""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = (part.get("text") for part in parts if part.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def _count(tokens: object) -> int:
    return tokens if isinstance(tokens, int) and tokens > 0 else 0
