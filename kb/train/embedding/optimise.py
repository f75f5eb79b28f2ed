"""The training loop: what belongs together close together, English close to the teacher.

What belongs together: a text and its translation, a heading and its paragraph, a term and its
meaning.
Losses: multiple negatives ranking in both directions at the full and at half the dimension, plus
the cosine distance to the teacher's vector on its main axes.
Source: https://sbert.net/docs/package_reference/sentence_transformer/losses.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = Sequence[list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything a person may turn; the defaults gave the shipped model."""

    dimension: int = 256
    steps: int = 900
    warm_up: int = 30  # steps until the full learning rate, which then falls to zero
    learning_rate: float = 3e-3
    batch: int = 768
    glossary_batch: int = 128
    token_dropout: float = 0.4
    scale: float = 20.0  # inverse temperature of the ranking loss
    teacher_weight: float = 25.0
    heading_every: int = 2  # steps between two batches of headings
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Token ids of the training texts; `teacher` has one unit row per pair's English side."""

    chinese: Ids
    english: Ids
    above: Ids
    below: Ids
    terms: Ids
    meanings: Ids
    teacher: NDArray[np.float32]


def optimise(
    rows: NDArray[np.float32],
    examples: Examples,
    recipe: Recipe,
    report: Callable[[int, float], None],
) -> NDArray[np.float32]:
    """Train `rows`, shape (pieces, dimension), and return the trained ones; row 0 stays zero.

    `report` is called with the step, from 1, and its loss.
    """
    import torch

    torch.manual_seed(recipe.seed)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    used, examples = _used(rows, examples)
    model = _Model(rows[used], recipe)
    optimiser = torch.optim.Adam(model.parameters(), lr=recipe.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, recipe))
    generator = np.random.default_rng(recipe.seed)
    pairs = _batches(len(examples.chinese), recipe.batch, generator)
    headings = _batches(len(examples.above), recipe.batch, generator)
    terms = _batches(len(examples.terms), recipe.glossary_batch, generator)
    for step in range(1, recipe.steps + 1):
        loss = model.translation_loss(examples, next(pairs), generator)
        loss = loss + model.ranking_loss(examples.terms, examples.meanings, next(terms), generator)
        if step % recipe.heading_every == 0:
            picked = next(headings)
            loss = loss + model.ranking_loss(examples.above, examples.below, picked, generator)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        report(step, float(loss.detach()))
    trained = rows.copy()
    trained[used] = model.rows()
    trained[0] = 0
    return trained


def _used(rows: NDArray[np.float32], examples: Examples) -> tuple[NDArray[np.int64], Examples]:
    """The ids that occur, and the examples in numbers of these: the other half never moves."""
    fields = ("chinese", "english", "above", "below", "terms", "meanings")
    sides: dict[str, Ids] = {field: getattr(examples, field) for field in fields}
    texts = [ids for side in sides.values() for ids in side]
    used = np.unique(np.concatenate([[0], *texts]).astype(np.int64))
    number = np.zeros(len(rows), dtype=np.int64)
    number[used] = np.arange(len(used))
    renumbered = {field: [number[ids].tolist() for ids in side] for field, side in sides.items()}
    return used, Examples(**renumbered, teacher=examples.teacher)


class _Model:
    """A sentence-transformers StaticEmbedding and its losses."""

    def __init__(self, rows: NDArray[np.float32], recipe: Recipe) -> None:
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.losses import MultipleNegativesRankingLoss
        from sentence_transformers.models import StaticEmbedding
        from tokenizers import Tokenizer, models

        self._torch = torch
        self._recipe = recipe
        empty = Tokenizer(models.Unigram([("<unk>", 0.0)], unk_id=0, byte_fallback=False))
        self._module = StaticEmbedding(empty, embedding_weights=torch.from_numpy(rows.copy()))
        self._ranking = MultipleNegativesRankingLoss(
            SentenceTransformer(modules=[self._module], device="cpu"),
            scale=recipe.scale,
            directions=("query_to_doc", "doc_to_query"),
            partition_mode="per_direction",
        )

    def parameters(self) -> Any:  # noqa: ANN401 - torch is untyped here
        return self._module.parameters()

    def rows(self) -> NDArray[np.float32]:
        weights: NDArray[np.float32] = self._module.embedding.weight.detach().numpy()
        return weights

    def translation_loss(
        self, examples: Examples, picked: NDArray[np.int64], generator: np.random.Generator
    ) -> Any:  # noqa: ANN401
        chinese = self._embed(examples.chinese, picked, generator)
        english = self._embed(examples.english, picked, generator)
        teacher = self._torch.from_numpy(examples.teacher[picked])
        cosine = self._torch.nn.functional.cosine_similarity(english, teacher)
        distance = 1 - cosine.mean()
        return self._rank(chinese, english) + self._recipe.teacher_weight * distance

    def ranking_loss(
        self, left: Ids, right: Ids, picked: NDArray[np.int64], generator: np.random.Generator
    ) -> Any:  # noqa: ANN401
        return self._rank(
            self._embed(left, picked, generator), self._embed(right, picked, generator)
        )

    def _rank(self, left: Any, right: Any) -> Any:  # noqa: ANN401
        half = self._recipe.dimension // 2
        labels = self._torch.empty(0)
        full = self._ranking.compute_loss_from_embeddings([left, right], labels)
        short = [left[:, :half], right[:, :half]]
        return full + self._ranking.compute_loss_from_embeddings(short, labels)

    def _embed(self, texts: Ids, picked: NDArray[np.int64], generator: np.random.Generator) -> Any:  # noqa: ANN401
        remaining = [_drop(texts[i], self._recipe.token_dropout, generator) for i in picked]
        lengths = np.array([0, *map(len, remaining[:-1])])
        features = {
            "input_ids": self._torch.from_numpy(np.concatenate(remaining)),
            "offsets": self._torch.from_numpy(np.cumsum(lengths)),
        }
        return self._module(features)["sentence_embedding"]


def _drop(ids: list[int], share: float, generator: np.random.Generator) -> NDArray[np.int64]:
    """`ids` without a random `share`; a text that would lose all keeps all."""
    every = np.asarray(ids, dtype=np.int64)
    remaining = every[generator.random(len(every)) >= share]
    return remaining if len(remaining) else every


def _rate(step: int, recipe: Recipe) -> float:
    """Share of the learning rate at `step`, counted from 0."""
    rest = (recipe.steps - step) / max(1, recipe.steps - recipe.warm_up)
    return min((step + 1) / recipe.warm_up, rest)


def _batches(count: int, size: int, generator: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Endless batches of distinct numbers below `count`, every number once an epoch."""
    size = min(size, count)
    while True:
        order = generator.permutation(count)
        for start in range(0, count - size + 1, size):
            yield order[start : start + size]
