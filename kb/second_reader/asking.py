"""Asks the language model about a verdict: once an incident, within limits, with what was measured.

It is slow and may fail; whoever asks has shown the first answer before. Whatever goes wrong, the
first verdict comes back with a line that says why.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from kb.diagnose.verdict import UNKNOWN_BELOW, SecondOpinion, Verdict
from kb.errors import StoreError
from kb.files.atomic import write_file
from kb.knowledge.load import Knowledge
from kb.second_reader.answer import (
    UNTESTED_TRUST,
    ModelAnswer,
    NoAnswer,
    opinion_of,
    parse_answer,
    pool,
)
from kb.second_reader.client import MAX_TOKENS, ModelReply
from kb.second_reader.limits import Limits, Usage
from kb.second_reader.message_reading import (
    MessageReading,
    MessageState,
    MessageVocabulary,
    message_prompt,
    parse_reading,
)
from kb.second_reader.prompt import Message, messages, report_text
from kb.second_reader.questions import GroundedSentence, parse_sentences, question_messages
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import UNKNOWN

TRUST_FILE = "second_reader.json"  # in the state folder: model → what was measured
MEANS_LABEL = "evidence.language_model"
KEPT_ANSWERS = 256
RETRY_S = 30.0  # what failed is asked again by those who wait, by those who look only after that
TOP = 3


class Asks(Protocol):
    """What a model is asked by: `kb.second_reader.client.ModelClient`."""

    model: str

    def ask(self, messages: Sequence[Message]) -> ModelReply:
        """The model's reply."""

    def close(self) -> None:
        """Let go of connections."""


class MeasuredTrust(msgspec.Struct, frozen=True):
    """How much a model is trusted, from 0 to 1, measured on `reports` reports."""

    trust: float
    reports: int
    date: str


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResult(Generic[T]):
    """What came of asking: the answer, or why there is none."""

    answer: T | None
    why: NoAnswer | None
    model: str
    tokens: int
    took_ms: float


class SecondReader:
    """Reads reports with a language model; safe for use by several threads."""

    def __init__(
        self,
        client: Asks,
        knowledge: Knowledge,
        limits: Limits,
        *,
        trust: float | None,
        home: Path,
        address: str = "",
    ) -> None:
        """Ask by `client`; `trust` overrides what was measured for its model (see `TRUST_FILE`)."""
        self.model = client.model
        self.address = printed_address(address)
        self._client = client
        self._causes = knowledge.causes
        self._ids = [cause.id for cause in knowledge.causes if cause.id != UNKNOWN]
        self._means: Bilingual = knowledge.labels[MEANS_LABEL]
        self._limits = limits
        measured = load_trust(home).get(client.model)
        usual = measured.trust if measured else UNTESTED_TRUST
        self.trust = usual if trust is None else trust
        self._answers: OrderedDict[str, ModelResult[Any]] = OrderedDict()
        self._answered_at: dict[str, float] = {}
        self._open: dict[str, Future[ModelResult[Any]]] = {}
        self._lock = threading.Lock()

    def read(self, verdict: Verdict, *, wait_s: float | None = None) -> Verdict:
        """The verdict with the model's opinion, or as it was with the reason why there is none.

        Args:
            verdict: ours; of a text about something else nothing is asked.
            wait_s: longer is not waited; the question goes on and its answer is kept.
        """
        if verdict.status == "no_timeout":
            return verdict
        asked = self._opinion(verdict, wait_s, self._limits)
        opinion = SecondOpinion(
            model=asked.model,
            why=asked.why.reason if asked.why else "",
            why_values=asked.why.values if asked.why else {},
            trust=self.trust,
            tokens=asked.tokens,
            took_ms=asked.took_ms,
        )
        if asked.answer is None:
            return replace(verdict, second=opinion)
        alone = opinion_of(asked.answer.causes, self._ids)
        top = sorted(alone.items(), key=lambda pair: (-pair[1], pair[0]))[:TOP]
        ranking = pool(verdict.ranking, asked.answer, self.trust, self._means)
        likely = ranking.causes[0].probability >= UNKNOWN_BELOW
        return replace(
            verdict,
            ranking=ranking,
            status="diagnosed" if likely else "unknown",
            second=replace(opinion, top=tuple(top), ask=asked.answer.ask),
        )

    def answer(
        self, question: str, material: Sequence[str], *, wait_s: float | None = None
    ) -> ModelResult[tuple[GroundedSentence, ...]]:
        """The answer to a person's question from the `material` alone."""
        parse = partial(parse_sentences, question=question, material=material)
        return self._ask(question_messages(question, material), parse, wait_s, self._limits)

    def read_message(
        self, state: MessageState, vocabulary: MessageVocabulary, *, wait_s: float
    ) -> ModelResult[MessageReading]:
        """What a person's message does, as far as it can be believed."""
        parse = partial(parse_reading, state=state, vocabulary=vocabulary)
        return self._ask(message_prompt(state, vocabulary), parse, wait_s, self._limits)

    def usage(self) -> Usage:
        """What was asked and what it cost, of this process."""
        return self._limits.usage()

    def ask_about(self, verdict: Verdict) -> ModelResult[ModelAnswer]:
        """What the model says of a verdict's report, whatever the limits: to measure it."""
        return self._opinion(verdict, None, None)

    def _opinion(
        self, verdict: Verdict, wait_s: float | None, limits: Limits | None
    ) -> ModelResult[ModelAnswer]:
        sent = report_text(verdict.reading, self._causes)
        parse = partial(parse_answer, causes=self._ids, sent=sent)
        return self._ask(messages(verdict, self._causes), parse, wait_s, limits)

    def _ask(
        self,
        question: list[Message],
        parse: Callable[[str], T],
        wait_s: float | None,
        limits: Limits | None,
    ) -> ModelResult[T]:
        key = hashlib.sha256(msgspec.json.encode([self._client.model, question])).hexdigest()
        with self._lock:
            kept = self._answers.get(key)
            looks = wait_s == 0 and time.monotonic() - self._answered_at.get(key, 0.0) < RETRY_S
            if kept is not None and (kept.answer is not None or looks):
                self._answers.move_to_end(key)
                return kept
            future = self._open.get(key)
            if future is None:
                future = self._open[key] = Future()
                threading.Thread(
                    target=self._work,
                    args=(
                        key,
                        future,
                        question,
                        parse,
                        limits,
                    ),
                    name="second-reader",
                    daemon=True,
                ).start()
        try:
            return future.result(timeout=wait_s)
        except FutureTimeoutError:
            return ModelResult(
                answer=None, why=NoAnswer("waiting"), model=self.model, tokens=0, took_ms=0.0
            )

    def _work(
        self,
        key: str,
        future: Future[ModelResult[T]],
        question: list[Message],
        parse: Callable[[str], T],
        limits: Limits | None,
    ) -> None:
        started = time.perf_counter()
        reply = ModelReply(text="", model=self.model)
        answer: T | None = None
        why: NoAnswer | None = None
        try:
            if limits is not None:
                limits.take()
            reply = self._client.ask(question)
            answer = parse(reply.text)
        except NoAnswer as none:
            why = none
            if none.reason == "no_json" and reply.without:
                why = NoAnswer(reply.without, tokens=str(reply.tokens_out or MAX_TOKENS))
        except Exception:  # noqa: BLE001 - whatever a foreign server does, the first answer stands
            from kb.log_lines import logger

            logger().exception("second reader failed")
            why = NoAnswer("failed")
        self._limits.count(why.reason if why else "answered", reply.tokens_in, reply.tokens_out)
        asked = ModelResult(
            answer=answer,
            why=why,
            model=reply.model,
            tokens=reply.tokens_in + reply.tokens_out,
            took_ms=round((time.perf_counter() - started) * 1000, 1),
        )
        with self._lock:
            del self._open[key]
            self._answers[key] = asked
            self._answered_at[key] = time.monotonic()
            while len(self._answers) > KEPT_ANSWERS:
                oldest, _ = self._answers.popitem(last=False)
                del self._answered_at[oldest]
        future.set_result(asked)

    def close(self) -> None:
        """Let go of connections."""
        self._client.close()


def printed_address(address: str) -> str:
    """Scheme, host and path of an address, without a user's name, a password or a query."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def load_trust(home: Path) -> dict[str, MeasuredTrust]:
    """What was measured of models, by name.

    Raises:
        StoreError: the file is damaged.
    """
    path = home / TRUST_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, MeasuredTrust])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(
            f"{path} cannot be read: {error}", todo="delete it and measure the model anew"
        ) from error


def save_trust(home: Path, model: str, measured: MeasuredTrust) -> Path:
    """Keep what was measured of a model."""
    path = home / TRUST_FILE
    known = load_trust(home) | {model: measured}
    write_file(path, msgspec.json.format(msgspec.json.encode(known), indent=1) + b"\n")
    return path
