"""Fits the rows of questions: ``python -m kb.train.embedding.questions`` (extra ``models``).

A question is asked in other words than an answer is written in. So the model has rows of its own
for tokens of questions, moved from those of texts as far as paraphrases of cases ask for: softmax
over the cases, a case being as near as its nearest chunk and its mean. Rows of texts stay, and with
them all stored vectors. Only cases with paraphrases take part, as right and as wrong ones.

The same paraphrases give the same rows: fixed seed, one thread.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb.embed.static import ROWS, SCALES, StaticEmbedder
from kb.knowledge.load import read_knowledge
from kb.knowledge.paraphrases import FOLDER, Paraphrase, load_paraphrases
from kb.settings import shipped_data
from kb.train.embedding.export import replace_question_rows
from kb.types.entries import Entry

Floats = NDArray[np.float32]
NEAREST_SHARE = 0.5  # of the nearest chunk in a case's score; the rest is its mean vector
SHARPNESS = 30.0  # of the smooth maximum over chunks
FAR = -1e9  # score of what is not there
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRecipe:
    """Everything a person may turn; chosen on cases left out in turn."""

    steps: int = 300
    warm_up: int = 20
    learning_rate: float = 2e-3
    weight_rate: float = 5.0  # times the learning rate, for the weight of a token
    batch: int = 256
    token_dropout: float = 0.3
    scale: float = 20.0  # inverse temperature
    penalty: float = 30.0  # on the squared move of a row, in mean lengths of a row
    weight_penalty: float = 10.0
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The chunks of the cases.

    Attributes:
        chunks: vectors, shape (chunks, dimension).
        of_case: positions of the chunks of each case, shape (cases, most); padded with 0.
        missing: 0, or `FAR` where `of_case` is padding.
        means: mean vectors, rows of length 1.
    """

    chunks: Floats
    of_case: NDArray[np.int64]
    missing: Floats
    means: Floats


def targets(cases: Sequence[Entry], model: StaticEmbedder) -> Targets:
    """The vectors the questions about `cases` have to come near."""
    vectors = model.encode_passages([chunk.text for case in cases for chunk in case.chunks])
    sizes = [len(case.chunks) for case in cases]
    starts = np.cumsum([0, *sizes])
    of_case = np.zeros((len(cases), max(sizes)), dtype=np.int64)
    missing = np.full(of_case.shape, FAR, dtype=np.float32)
    means = np.zeros((len(cases), vectors.shape[1]), dtype=np.float32)
    for number, size in enumerate(sizes):
        of_case[number, :size] = np.arange(starts[number], starts[number + 1])
        missing[number, :size] = 0
        mean = vectors[of_case[number, :size]].mean(axis=0)
        means[number] = mean / np.linalg.norm(mean)
    return Targets(chunks=vectors, of_case=of_case, missing=missing, means=means)


def fit_questions(
    paraphrases: Sequence[Paraphrase],
    cases: Sequence[Entry],
    model: StaticEmbedder,
    rows: Floats,
    recipe: QuestionRecipe,
) -> tuple[NDArray[np.int64], Floats]:
    """Ids of the tokens of `paraphrases`, ascending, and their rows as parts of questions.

    `rows` are those of texts, shape (tokens, dimension).
    """
    import torch

    torch.manual_seed(recipe.seed)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    position = {case.id: number for number, case in enumerate(cases)}
    bags = list(model.weighed_tokens([item.text for item in paraphrases]))
    right = np.array([position[item.case] for item in paraphrases])
    used = np.unique(np.concatenate([ids for ids, _ in bags]))
    number = np.zeros(len(rows), dtype=np.int64)
    number[used] = np.arange(len(used))
    fitting = _Fitting(rows[used], targets(cases, model), recipe)
    generator = np.random.default_rng(recipe.seed)
    for step in range(recipe.steps):
        picked = generator.choice(len(bags), min(recipe.batch, len(bags)), replace=False)
        some = []
        for one in picked:
            ids, weights = bags[one]
            remaining = generator.random(len(ids)) >= recipe.token_dropout
            remaining |= not remaining.any()
            some.append((number[ids[remaining]], weights[remaining]))
        loss = fitting.step(step, some, right[picked])
        if step % 50 == 0:
            _log.info("step %d: loss %.3f", step, loss)
    return used, fitting.rows()


class _Fitting:
    """The moves of the rows and the weights of their tokens, and one step of their fit."""

    def __init__(self, rows: Floats, target: Targets, recipe: QuestionRecipe) -> None:
        import torch

        self._torch = torch
        self._recipe = recipe
        self._start = torch.from_numpy(rows.copy())
        self._unit = float(self._start.norm(dim=1).mean())
        self._moves = torch.zeros_like(self._start, requires_grad=True)
        self._weights = torch.zeros(len(rows), requires_grad=True)
        self._chunks = torch.from_numpy(target.chunks)
        self._means = torch.from_numpy(target.means)
        self._of_case = torch.from_numpy(target.of_case)
        self._missing = torch.from_numpy(target.missing)
        self._optimiser = torch.optim.Adam([{"params": [self._moves]}, {"params": [self._weights]}])

    def rows(self) -> Floats:
        """The rows as they are now."""
        fitted: Floats = self._rows().detach().numpy()
        return fitted

    def _rows(self) -> Any:  # noqa: ANN401 - torch is untyped here
        return (self._start + self._moves) * self._torch.exp(self._weights)[:, None]

    def step(
        self,
        number: int,
        bags: Sequence[tuple[NDArray[np.int64], Floats]],
        right: NDArray[np.int64],
    ) -> float:
        """Move the rows by one batch; returns its loss."""
        torch, recipe = self._torch, self._recipe
        rate = recipe.learning_rate * min(1.0, (number + 1) / recipe.warm_up)
        rate *= 1 - number / recipe.steps
        moves, weights = self._optimiser.param_groups
        moves["lr"], weights["lr"] = rate, rate * recipe.weight_rate
        questions = torch.nn.functional.embedding_bag(
            torch.from_numpy(np.concatenate([ids for ids, _ in bags])),
            self._rows(),
            torch.from_numpy(np.cumsum([0, *(len(ids) for ids, _ in bags[:-1])])),
            mode="sum",
            per_sample_weights=torch.from_numpy(np.concatenate([own for _, own in bags])),
        )
        loss = torch.nn.functional.cross_entropy(
            recipe.scale * self._scores(torch.nn.functional.normalize(questions, dim=1)),
            torch.from_numpy(right),
        )
        loss = loss + recipe.penalty * ((self._moves / self._unit) ** 2).sum(1).mean()
        loss = loss + recipe.weight_penalty * (self._weights**2).mean()
        self._optimiser.zero_grad()
        loss.backward()
        self._optimiser.step()
        return float(loss.detach())

    def _scores(self, questions: Any) -> Any:  # noqa: ANN401
        cosines = (questions @ self._chunks.T)[:, self._of_case] + self._missing
        nearest = self._torch.logsumexp(SHARPNESS * cosines, 2) / SHARPNESS
        means = questions @ self._means.T
        return NEAREST_SHARE * nearest + (1 - NEAREST_SHARE) * means


def read_rows_of_texts(folder: Path) -> Floats:
    """The rows of the model in `folder` as they were before they were rounded, nearly."""
    scales = np.load(folder / SCALES).astype(np.float32)
    rows: Floats = np.load(folder / ROWS).astype(np.float32) * scales[:, None]
    return rows


def main() -> int:
    """Fit on data/paraphrases and write the rows to data/model."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    logging.basicConfig(format="%(relativeCreated)8.0f ms  %(message)s")
    _log.setLevel(logging.INFO)
    data = shipped_data()
    folder = data / "model"
    paraphrases = load_paraphrases(data / FOLDER)
    learned = {item.case for item in paraphrases}
    cases = [case for case in read_knowledge(data).cases if case.id in learned]
    model = StaticEmbedder.load(folder)
    rows = read_rows_of_texts(folder)
    ids, fitted = fit_questions(paraphrases, cases, model, rows, QuestionRecipe())
    content = replace_question_rows(folder, ids, fitted)
    _log.info("%d rows of questions in %s, %s", len(ids), folder, content[:12])
    return 0


if __name__ == "__main__":
    sys.exit(main())
