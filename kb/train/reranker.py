"""Fits data/search: ``python -m kb.train.reranker``.

On the paraphrases of the cases and a snapshot of the search without them: what the words of a
question tell, then the weights of the second look. The weights are fitted on entries whose words
were counted without the paraphrases of their fold. The same input gives the same files.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from kb.embed import embedded_model
from kb.embed.base import Embedder
from kb.files.atomic import write_file
from kb.index.live import SearchIndex
from kb.knowledge.framework_names import FrameworkNames
from kb.knowledge.load import read_knowledge
from kb.knowledge.paraphrases import FOLDER as PARAPHRASES
from kb.knowledge.paraphrases import Paraphrase, load_paraphrases
from kb.search.rerank import (
    FEATURES,
    FOLDER,
    TRANSLATED,
    WEIGHTS,
    WORDS,
    Reranker,
    RerankWeights,
)
from kb.search.searcher import Searcher
from kb.settings import shipped_data
from kb.store import Store
from kb.store.database import DATABASE
from kb.text.tokenizer import Tokenizer
from kb.types.entries import Entry

FOLDS = 5  # of cases
PENALTY = 1e-3  # on the squares of the weights, so that none runs away
MIN_ASKED = 2  # paraphrases with a word that is shipped; a single one tells less than the prior
ROUNDS = 50  # Newton steps; ten are enough
HALF = 0.5
DIGITS = 4
START = RerankWeights(
    prior=HALF,
    shift=0.0,
    likeness=1.0,
    coverage=0.0,
    same_framework=0.0,
    other_framework=0.0,
    other_hardware=0.0,
)
Counts = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The first entries for a paraphrase: features, shape (entries, features), and the right one.

    `right` is its row, -1 where it is not among them.
    """

    features: NDArray[np.float64]
    right: int


def fold_of(case: str) -> int:
    """The fold of a case; all its paraphrases are in it."""
    return hashlib.sha256(case.encode()).digest()[0] % FOLDS


def count_words(
    paraphrases: Sequence[Paraphrase], cases: Sequence[Entry], tokenizer: Tokenizer
) -> Counts:
    """Of every word of the paraphrases: in how many it stands, and in how many of their cases.

    A translation in the case counts as the word.
    """
    words = {
        case.id: frozenset(
            token
            for text in (case.project, *(chunk.text for chunk in case.chunks))
            for token in tokenizer.tokens(text)
        )
        for case in cases
    }
    asked: Counter[str] = Counter()
    present: Counter[str] = Counter()
    for item in paraphrases:
        there = words[item.case]
        for word in set(tokenizer.tokens(item.text)):
            asked[word] += 1
            best = max(
                (min(1.0, weight * TRANSLATED) if other != word else 1.0) if other in there else 0.0
                for other, weight in tokenizer.expand([word])
            )
            present[word] += best >= HALF
    return {word: (count, present[word]) for word, count in sorted(asked.items())}


def prior_of(counts: Mapping[str, tuple[int, int]]) -> float:
    """How often a word of a paraphrase stands in its case."""
    return sum(n for _, n in counts.values()) / max(1, sum(n for n, _ in counts.values()))


class TextRows:
    """The embedder with the rows of texts for questions as well.

    Those of questions were fitted on the same paraphrases and would flatter the likeness.
    """

    def __init__(self, embedder: Embedder) -> None:
        """Encode everything as passages of `embedder`."""
        self.name, self.dimension = embedder.name, embedder.dimension
        self.encode_queries = self.encode_passages = embedder.encode_passages


@contextmanager
def index_of(
    cases: Sequence[Entry], embedder: Embedder, tokenizer: Tokenizer
) -> Iterator[tuple[Store, SearchIndex]]:
    """The cases alone, searchable."""
    with tempfile.TemporaryDirectory() as name:
        store = Store.open(Path(name) / DATABASE)
        try:
            store.upsert(cases)
            index = SearchIndex(
                Path(name) / "index", store=store, embedder=embedder, tokenizer=tokenizer
            )
            index.catch_up()
            yield store, index
        finally:
            store.close()


def rankings(
    searcher: Searcher, paraphrases: Sequence[Paraphrase], learned: Collection[str]
) -> list[Candidates]:
    """What the second look has to go by for each paraphrase, among the cases `learned`."""
    found = []
    for item in paraphrases:
        looks = [look for look in searcher.features(item.text) if look[0] in learned]
        ids = [entry for entry, _ in looks]
        found.append(
            Candidates(
                features=np.array([features for _, features in looks], dtype=np.float64),
                right=ids.index(item.case) if item.case in ids else -1,
            )
        )
    return found


def fit_weights(all_rankings: Sequence[Candidates]) -> NDArray[np.float64]:
    """Weights under which the right entry of each ranking is the most probable (softmax).

    By Newton's method; shape (features,).
    """
    useful = [one for one in all_rankings if one.right >= 0]
    size = len(FEATURES)
    weights = np.zeros(size)
    for _ in range(ROUNDS):
        gradient = 2 * PENALTY * len(useful) * weights
        curvature = 2 * PENALTY * len(useful) * np.eye(size)
        for one in useful:
            scores = one.features @ weights
            probability = np.exp(scores - scores.max())
            probability /= probability.sum()
            mean = probability @ one.features
            gradient += mean - one.features[one.right]
            centred = one.features - mean
            curvature += (centred * probability[:, None]).T @ centred
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 10**-DIGITS:
            break
    return weights


def scaled(
    weights: NDArray[np.float64], all_rankings: Sequence[Candidates]
) -> tuple[NDArray[np.float64], float]:
    """The weights and a shift with which a score means what the first look's did.

    An entry that is as like as can be and has all words scores 1; the best score of a paraphrase
    is in the middle what the first look's was. So thresholds keep their meaning.
    """
    best = float(np.median([(one.features @ weights).max() for one in all_rankings]))
    first = float(np.median([one.features[:, 0].max() for one in all_rankings]))
    same = float(weights[FEATURES.index("likeness")] + weights[FEATURES.index("coverage")])
    scale = (1 - first) / (same - best)
    return weights * scale, first - scale * best


def ranks(all_rankings: Sequence[Candidates], weights: NDArray[np.float64]) -> list[int]:
    """Rank of the right entry, from 1; 0 where it is not among the first."""
    return [
        int((one.features @ weights > (one.features @ weights)[one.right]).sum()) + 1
        if one.right >= 0
        else 0
        for one in all_rankings
    ]


def main() -> int:
    """Fit, write ``data/search``, and print how often the right case is first and among five."""
    data = shipped_data()
    knowledge = read_knowledge(data)
    tokenizer, embedder = Tokenizer(data / "lexicon"), TextRows(embedded_model(data))
    paraphrases = load_paraphrases(data / PARAPHRASES)
    learned = {item.case for item in paraphrases}
    names = FrameworkNames(knowledge.framework_names)
    per_fold: list[list[Candidates]] = []
    with index_of(knowledge.cases, embedder, tokenizer) as (store, index):
        for fold in range(FOLDS):
            apart = [item for item in paraphrases if fold_of(item.case) == fold]
            others = [item for item in paraphrases if fold_of(item.case) != fold]
            counts = count_words(others, knowledge.cases, tokenizer)
            reranker = Reranker(
                msgspec.structs.replace(START, prior=prior_of(counts)), counts, names
            )
            searcher = Searcher(store, index, embedder, tokenizer, reranker=reranker)
            per_fold.append(rankings(searcher, apart, learned))
    everything = [one for some in per_fold for one in some]
    first = np.zeros(len(FEATURES))
    first[0] = 1.0
    held_out: list[int] = []
    for fold, some in enumerate(per_fold):
        rest = [one for other, its in enumerate(per_fold) if other != fold for one in its]
        held_out += ranks(some, fit_weights(rest))
    weights, shift = scaled(fit_weights(everything), everything)
    counts = count_words(paraphrases, knowledge.cases, tokenizer)
    own = dict(zip(FEATURES, (round(float(weight), DIGITS) for weight in weights), strict=True))
    fitted = RerankWeights(
        prior=round(prior_of(counts), DIGITS),
        shift=round(shift, DIGITS),
        likeness=own["likeness"],
        coverage=own["coverage"],
        same_framework=own["same_framework"],
        other_framework=own["other_framework"],
        other_hardware=own["other_hardware"],
        same_stage=own["same_stage"],
        other_stage=own["other_stage"],
        fitted_on=f"{len(paraphrases)} paraphrases of {len(learned)} cases",
    )
    folder = data / FOLDER
    folder.mkdir(exist_ok=True)
    lines = [f"{word}\t{n}\t{k}\n" for word, (n, k) in counts.items() if n >= MIN_ASKED]
    head = "# word, paraphrases that have it, of these the ones whose case has it\n"
    (folder / WORDS).write_text(head + "".join(lines), "utf-8")
    write_file(folder / WEIGHTS, msgspec.json.format(msgspec.json.encode(fitted), indent=1) + b"\n")
    for name, those in (("first look", ranks(everything, first)), ("second", held_out)):
        at_1, at_5 = (sum(0 < r <= k for r in those) / len(those) for k in (1, 5))
        sys.stderr.write(f"{name}: first {at_1:.3f}, among five {at_5:.3f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
