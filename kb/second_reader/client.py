"""One question to an address that speaks the OpenAI chat API: a vendor's, or vLLM, SGLang, Ollama.

Nothing is retried but what an older server refuses to know (`response_format`): the first answer of
the product stands meanwhile, and the model's is a gain or none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kb.errors import MissingExtraError
from kb.second_reader.answer import NoAnswer
from kb.second_reader.prompt import Message

if TYPE_CHECKING:
    import httpx

MAX_REPLY = 1 << 20  # bytes
CONNECT_S = 5.0
MAX_TOKENS = 1500  # of the reply; models that think first need some
JSON_ONLY = {"type": "json_object"}
NOT_UNDERSTOOD = (400, 404, 415, 422)  # what older servers say of response_format


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """A model's words, and what they cost in tokens (0 where the server does not tell)."""

    text: str
    model: str
    tokens_in: int = 0
    tokens_out: int = 0


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
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": MAX_TOKENS,
            "response_format": JSON_ONLY,
        }
        deadline = time.monotonic() + self._limit_s
        status, content = self._post(body, deadline)
        if status in NOT_UNDERSTOOD:
            del body["response_format"]
            status, content = self._post(body, deadline)
        if status != 200:
            raise NoAnswer("status", status=str(status))
        return _reply(content, self.model)

    def _post(self, body: dict[str, Any], deadline: float) -> tuple[int, bytes]:
        """Status and body; the whole of it must have come by `deadline`."""
        import httpx

        left = deadline - time.monotonic()
        if left <= 0:
            raise NoAnswer("slow")
        try:
            with self._http.stream(
                "POST", "chat/completions", json=body, timeout=httpx.Timeout(left)
            ) as response:
                return response.status_code, _limited(response, deadline)
        except httpx.TimeoutException as error:
            raise NoAnswer("slow") from error
        except httpx.HTTPError as error:
            raise NoAnswer("unreachable", error=type(error).__name__) from error

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()


def _limited(response: httpx.Response, deadline: float) -> bytes:
    content = bytearray()
    for piece in response.iter_bytes():
        content += piece
        if len(content) > MAX_REPLY:
            raise NoAnswer("long")
        if time.monotonic() > deadline:  # a body that comes drop by drop never times out by itself
            raise NoAnswer("slow")
    return bytes(content)


def _reply(content: bytes, model: str) -> ModelReply:
    import msgspec

    try:
        value = msgspec.json.decode(content)
        message = value["choices"][0]["message"]
        text = message["content"]
        usage = value.get("usage") or {}
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError) as error:
        raise NoAnswer("no_chat") from error
    if not isinstance(text, str) or not text.strip():
        raise NoAnswer("refused" if message.get("refusal") else "empty")
    counts = [usage.get(name) if isinstance(usage, dict) else 0 for name in _USAGE]
    tokens_in, tokens_out = (one if isinstance(one, int) else 0 for one in counts)
    named = value.get("model")
    return ModelReply(
        text=text,
        model=named if isinstance(named, str) else model,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
    )


_USAGE = ("prompt_tokens", "completion_tokens")
