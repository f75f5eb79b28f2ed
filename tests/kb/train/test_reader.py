"""Fitting the reader: it learns words, holds groups out, and gives the same model twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kb.diagnose.reader import Reader
from kb.embed import embedded_model
from kb.settings import shipped_data
from kb.text.tokenizer import default_tokenizer
from kb.train.reader import ReaderFit, ReaderSample

CAUSES = ("network-fault", "checkpoint-io")
EMBEDDER = embedded_model(shipped_data())
TEXTS = {
    "network-fault": ("The switch port flaps at noon", "link flapped, the switch counts errors"),
    "checkpoint-io": ("Saving weights takes an hour", "it stops while saving the weights"),
}


def samples() -> list[ReaderSample]:
    """Twelve descriptions of two causes, each a group of its own."""
    return [
        ReaderSample(words=f"{text}. {n}.", target={cause: 1.0}, group=f"{cause}{n}", weight=9.0)
        for cause, texts in TEXTS.items()
        for n, text in enumerate(texts * 3)
    ]


def fitted(more: list[ReaderSample] | None = None) -> ReaderFit:
    """A fit of them, and of some more."""
    return ReaderFit([*samples(), *(more or [])], CAUSES, EMBEDDER, default_tokenizer())


def leaning(words: str, fit: ReaderFit) -> float:
    """Nats for the network less those for the checkpoint."""
    shares = Reader(fit.model(), EMBEDDER, default_tokenizer()).read(words)
    return sum(share.weights[CAUSES[0]] - share.weights[CAUSES[1]] for share in shares)


def test_words_are_learned() -> None:
    """New descriptions with words of one cause lean to it."""
    fit = fitted()
    assert leaning("Our switch lost a link.", fit) > 0.1
    assert leaning("It hangs saving.", fit) < -0.1


def test_the_same_samples_give_the_same_model() -> None:
    """Bit by bit."""
    one, other = fitted().model(), fitted().model()
    assert np.array_equal(one.rows, other.rows)
    assert (one.tokens, one.idf.tolist()) == (other.tokens, other.idf.tolist())


def test_a_group_is_held_out() -> None:
    """What a group alone says is not known when it is judged, but when it is not held out."""
    odd = [
        ReaderSample(words="zebra zebra crossing", target={CAUSES[1]: 1.0}, group="odd", weight=9.0)
    ] * 6
    fit = fitted(odd)
    assert "zebra" in fit.model().tokens
    held = fit.held_out("zebra zebra crossing", "odd")
    assert sum(held.values()) == pytest.approx(0)
    known = Reader(fit.model(), EMBEDDER, default_tokenizer()).read("zebra zebra crossing")
    assert sum(share.weights[CAUSES[1]] for share in known) > held[CAUSES[1]] + 0.3


def test_empty_descriptions_teach_nothing() -> None:
    """Nor do they disturb."""
    empty = ReaderSample(words="", target={CAUSES[0]: 1.0}, group="none", weight=1.0)
    plain, with_empty = fitted().model(), fitted([empty]).model()
    assert np.array_equal(plain.rows, with_empty.rows)
    assert not any(fitted([empty]).held_out("", "none").values())


def test_the_shipped_model_knows_every_cause(data_dir: Path) -> None:
    """The shipped files fit the shipped causes and embedding."""
    from kb.diagnose.linear_model import load_model
    from kb.diagnose.reader import FOLDER
    from kb.knowledge.load import load_knowledge

    model = load_model(data_dir / FOLDER)
    causes = {cause.id for cause in load_knowledge(data_dir).causes}
    assert set(model.causes) == causes - {"unknown"}
    assert len(model.tokens) > 2000
    assert len(model.rows) == len(model.tokens) + EMBEDDER.dimension
