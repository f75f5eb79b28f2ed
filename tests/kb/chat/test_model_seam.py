"""With a language model: its words where they hold, the engine's where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from kb.chat import Chat
from kb.chat.model import ModelError, ModelRequest
from kb.chat.types import Reply, Statement
from kb.service import Service
from tests.kb.chat.conftest import OOM_LOG, Clock, uncited


@dataclass
class Scripted:
    """Says `answer`, or fails."""

    answer: str = "The first error is on rank 2 at line 1 [1]."
    fails: bool = False
    asked: list[ModelRequest] = field(default_factory=list)

    def stream(self, request: ModelRequest) -> Iterator[str]:
        """The answer in small pieces."""
        self.asked.append(request)
        if self.fails:
            raise ModelError("no answer", todo="try again")
        for start in range(0, len(self.answer), 7):
            yield self.answer[start : start + 7]


def plain(service: Service, clock: Clock) -> Reply:
    """The engine's own answer."""
    return Chat(service, clock=clock).say(OOM_LOG)


def test_its_words_take_the_place_of_the_engines(service: Service, clock: Clock) -> None:
    """What the model says of the evidence is said, cited and kept."""
    model = Scripted()
    chat = Chat(service, model=model, clock=clock)
    reply = chat.say(OOM_LOG)
    assert reply.source == "model"
    assert uncited(reply) == []
    assert reply.diagnosis is not None
    kept = chat.conversation(reply.conversation)
    assert [turn.reply.source for turn in kept.turns] == ["model"]
    assert kept.turns[0].reply.statements == reply.statements


@pytest.mark.parametrize(
    "model",
    [Scripted(fails=True), Scripted(answer="The moon is made of cheese [1].")],
    ids=["fails", "invents"],
)
def test_the_engine_stands_in(service: Service, clock: Clock, model: Scripted) -> None:
    """A model that fails, or says what no evidence holds, is not heard."""
    reply = Chat(service, model=model, clock=clock).say(OOM_LOG)
    expected = plain(service, clock)
    assert reply.source == "engine"
    assert reply.statements == expected.statements


def test_half_an_answer_is_no_answer(service: Service, clock: Clock) -> None:
    """When a model breaks off, the reply is the engine's; what was said before stays sound."""

    class Half(Scripted):
        """Breaks off after its first sentence."""

        def stream(self, request: ModelRequest) -> Iterator[str]:
            yield from super().stream(request)
            yield " And"
            raise ModelError("broken off", todo="try again")

    *statements, reply = Chat(service, model=Half(), clock=clock).stream(OOM_LOG)
    assert isinstance(reply, Reply)
    assert reply.source == "engine"
    assert reply.statements == plain(service, clock).statements
    assert all(s.citations for s in statements if isinstance(s, Statement))


def test_forgotten_while_a_model_speaks(service: Service, clock: Clock) -> None:
    """A conversation deleted meanwhile stays deleted, and the answer is still given."""
    chat = Chat(service, model=Scripted(), clock=clock)
    stream = chat.stream(OOM_LOG, conversation="slack:T9:C9:9.9", create=True)
    next(stream)
    assert chat.forget("slack:T9:C9:9.9")
    *_, reply = stream
    assert isinstance(reply, Reply)
    assert reply.source == "model"
    assert not chat.forget("slack:T9:C9:9.9")


def test_it_never_sees_a_secret(service: Service, clock: Clock) -> None:
    """What is sent to a model is redacted."""
    secret = "hf_" + "a1B2c3D4" * 4
    model = Scripted()
    Chat(service, model=model, clock=clock).say(f"token {secret}, why does it hang?\n\n{OOM_LOG}")
    assert model.asked
    assert secret not in str(model.asked)
