"""Fits what sentences are read with, on sentences written and labelled for it.

``python -m kb.train.statements`` reads ``data/statements/*.jsonl`` and writes the two models of
`kb.diagnose.statement_model`: which topics a sentence speaks of, and how. ``--folds 5`` prints
instead how many sentences left out are read rightly, beside the rules alone, by the file they
stand in. Deterministic: the same sentences give the same models. Needs the extra ``fit``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kb.diagnose.linear_model import LinearModel, save_model
from kb.diagnose.statement_model import (
    POLARITIES,
    TOPICS,
    Naming,
    StatementModel,
    as_seen,
    polarity_features,
    topic_features,
)
from kb.diagnose.statements import StatementReader, TopicStatement, distinct, sentences_of
from kb.diagnose.text_scorer import ALWAYS, TextScorer
from kb.embed import Embedder, embedded_model
from kb.evaluation.statements import (
    SENTENCES,
    JudgedSentence,
    LabelledSentence,
    judge_sentences,
    load_sentences,
)
from kb.knowledge.load import Knowledge, load_knowledge
from kb.settings import shipped_data
from kb.text.polarity import PolarityReader, Sentences
from kb.text.tokenizer import default_tokenizer
from kb.train.feature_table import FeatureTable
from kb.types.vocabulary import Language

FOLDER = "statements"  # of data/: labelled sentences, and the fitted models beside them
MODELS = (TOPICS, POLARITIES)
TOPIC_STRENGTH, POLARITY_STRENGTH = 20.0, 10.0  # inverse penalty on large weights
MEANING = 0.8  # length of the embedding beside the words', which is 1
ROUNDS = 400
EXPLAINED = 2  # of the sentences of notes every so many teaches that a name says nothing
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
NEVER = -20.0  # nats of a topic without a sentence
LANGUAGES: tuple[Language, Language] = ("zh", "en")
Models = tuple[LinearModel, LinearModel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A sentence as the models see it, and its topics with their polarities."""

    text: str
    namings: Mapping[str, Naming]
    meaning: NDArray[np.float32]
    stated: Mapping[str, str]


class ExampleMaker:
    """Makes examples of labelled sentences."""

    def __init__(self, knowledge: Knowledge, embedder: Embedder) -> None:
        """See sentences by the topics and marks of `knowledge`."""
        self.knowledge, self.embedder = knowledge, embedder
        self._rules = StatementReader(knowledge.topics)
        self._polarity = PolarityReader(knowledge.polarity)

    def make(self, labelled: Iterable[LabelledSentence]) -> list[Example]:
        """An example of every text that is one sentence: of two nobody said which says what.

        Of a topic with two polarities the last one counts: "broken last week, fine now".
        """
        alone = []
        for item in labelled:
            remarks = self._polarity.read(item.text)
            numbers, texts = sentences_of(remarks)
            if len(texts) == 1:
                namings = self._rules.namings(remarks).get(numbers[0], {})
                alone.append((texts[0], namings, dict(item.statements)))
        meanings = self.embedder.encode_passages([text for text, _, _ in alone])
        normalise = default_tokenizer().normalise
        return [
            Example(text=as_seen(text, normalise), namings=namings, meaning=meaning, stated=stated)
            for (text, namings, stated), meaning in zip(alone, meanings, strict=True)
        ]

    def by_rules(self, text: str) -> tuple[TopicStatement, ...]:
        """The statements of a text as the rules alone read them."""
        return distinct(self._rules.read(self._polarity.read(text)))

    def by_models(self, models: Models) -> Callable[[str], tuple[TopicStatement, ...]]:
        """What reads the statements of a text with `models`."""
        normalise = default_tokenizer().normalise
        topics, polarities = (
            TextScorer(model, self.embedder, normalise, FOLDER) for model in models
        )
        reader = StatementReader(
            self.knowledge.topics, StatementModel(topics, polarities, normalise)
        )
        return lambda text: distinct(reader.read(self._polarity.read(text)))


def fit(examples: ExampleMaker, labelled: Sequence[LabelledSentence]) -> Models:
    """The models of which topics a sentence speaks of, and how."""
    made = examples.make(labelled)
    topics = [topic.id for topic in examples.knowledge.topics]
    return _fit_topics(made, topics), _fit_polarities(made)


def _fit_topics(examples: Sequence[Example], topics: Sequence[str]) -> LinearModel:
    from sklearn.linear_model import LogisticRegression

    table = _table(examples, [list(topic_features(one.text, one.namings)) for one in examples])
    columns = np.zeros((table.matrix.shape[1], len(topics)))
    for number, topic in enumerate(topics):
        stated = [topic in example.stated for example in examples]
        if not any(stated):
            columns[table.tokens.index(ALWAYS), number] = NEVER
            continue
        model = LogisticRegression(C=TOPIC_STRENGTH, solver="liblinear", fit_intercept=False)
        columns[:, number] = model.fit(table.matrix, stated).coef_[0]
    return table.model(topics, columns, fitted_on=f"{len(examples)} sentences")


def _fit_polarities(examples: Sequence[Example]) -> LinearModel:
    from sklearn.linear_model import LogisticRegression

    pairs = [(example, topic) for example in examples for topic in example.stated]
    table = _table(
        [example for example, _ in pairs],
        [list(polarity_features(one.text, topic, one.namings)) for one, topic in pairs],
    )
    model = LogisticRegression(C=POLARITY_STRENGTH, max_iter=ROUNDS, fit_intercept=False)
    model.fit(table.matrix, [example.stated[topic] for example, topic in pairs])
    return table.model(
        [str(name) for name in model.classes_], model.coef_.T, fitted_on=f"{len(pairs)} statements"
    )


def _table(examples: Sequence[Example], features: Sequence[Sequence[str]]) -> FeatureTable:
    return FeatureTable(
        features, np.stack([example.meaning for example in examples]), meaning=MEANING
    )


def explanations(knowledge: Knowledge) -> list[LabelledSentence]:
    """Sentences of the notes: they name topics and say nothing of an incident."""
    found = []
    for note in knowledge.notes:
        for body, language in ((note.body.zh, LANGUAGES[0]), (note.body.en, LANGUAGES[1])):
            words = _FENCED.sub("", body)
            spans = Sentences(words)
            texts = (words[slice(*spans.span(number))].strip() for number in range(len(spans)))
            found += [
                LabelledSentence(lang=language, text=text, statements=()) for text in texts if text
            ]
    return found[::EXPLAINED]


def judge(
    examples: ExampleMaker,
    known: Sequence[LabelledSentence],
    labelled: Sequence[LabelledSentence],
    folds: int,
) -> dict[str, list[JudgedSentence]]:
    """Sentences read by models fitted without them, and by the rules alone.

    The `known` ones are in every fit and judge nothing: the rules were written from them.
    """
    read: list[JudgedSentence] = []
    for fold in range(folds):
        rest = [item for number, item in enumerate(labelled) if number % folds != fold]
        models = fit(examples, [*known, *rest])
        read += judge_sentences(examples.by_models(models), labelled[fold::folds])
    return {"fitted": read, "rules alone": judge_sentences(examples.by_rules, labelled)}


def main() -> None:
    """Fit, or with ``--folds`` judge the fit on sentences it has not seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--data", type=Path, default=shipped_data())
    options = parser.parse_args()
    data: Path = options.data
    examples = ExampleMaker(load_knowledge(data), embedded_model(data))
    files = {path.stem: load_sentences(path) for path in sorted((data / FOLDER).glob("*.jsonl"))}
    labelled = [item for own in files.values() for item in own]
    known = load_sentences(data / "golden" / SENTENCES)
    plain = [*known, *explanations(examples.knowledge)]
    if not options.folds:
        models = fit(examples, [*plain, *labelled])
        for folder, model in zip(MODELS, models, strict=True):
            save_model(data / folder, model)
        return
    for name, read in judge(examples, plain, labelled, options.folds).items():
        print(f"{name}: {_share(read, labelled)}")  # noqa: T201 - its only output
        for stem, own in files.items():
            print(f"  {stem}: {_share(read, own)}")  # noqa: T201


def _share(read: Sequence[JudgedSentence], own: Sequence[LabelledSentence]) -> str:
    texts = {item.text for item in own}
    judged = [item for item in read if item.sentence.text in texts]
    return f"{sum(item.is_right for item in judged) / len(judged):.3f} of {len(judged)}"


if __name__ == "__main__":
    main()
