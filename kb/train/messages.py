"""Fits what the chat reads messages with, on messages written for it (``data/chat/*.jsonl``).

``python -m kb.train.messages`` writes three models: what a message does and how far it says the
incident is (`kb.chat.acts`, fitted on ``messages.jsonl`` and ``progress.jsonl``), and which outcome
of a check it reports (`kb.chat.check_answers`, fitted on ``check_answers.jsonl``). ``--folds 5``
prints instead how often a message left out is read rightly.
Deterministic: the same messages give the same models. Needs the extra ``fit``.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from kb.chat import acts, check_answers
from kb.chat.acts import ACTS, PROGRESS_FOLDER, PROGRESSES, ActReader, ProgressReader
from kb.chat.check_answers import NONE, TROUBLE, CheckAnswerReader, answer_class
from kb.chat.sentences import sentences
from kb.chat.types import Act, Progress
from kb.diagnose.linear_model import LinearModel, save_model
from kb.diagnose.text_scorer import ALWAYS, TextScorer, text_features
from kb.embed import Embedder, embedded_model
from kb.knowledge.load import load_knowledge
from kb.settings import shipped_data
from kb.text.tokenizer import default_tokenizer
from kb.train.feature_table import FeatureTable
from kb.train.reports import Report, load_reports
from kb.types.knowledge import Check
from kb.types.vocabulary import Language

MESSAGES, ANSWERS = Path("chat/messages.jsonl"), Path("chat/check_answers.jsonl")  # of data/
PROGRESS = Path("chat/progress.jsonl")
PROGRESS_STRENGTH = 6.0
PROGRESS_COPIES = 4  # of a message written for it: alone, and beside facts that are told
OTHERS = 6  # of messages that say nothing of it every so many is one of the fit
FACTS = 3  # of facts that are told every so many
ACT_STRENGTH, ANSWER_STRENGTH, TROUBLE_STRENGTH = 4.0, 8.0, 3.0  # inverse penalty on large weights
TOLD = 6  # of the answers every so many is a message that tells a fact, too
TOLD_CHARS = range(8, 110)  # of a sentence that tells one; a shorter one is a yes or a no
TOLD_SENTENCES = 3000  # of the reports that are messages that tell a fact
ROUNDS = 400
NEVER = -20.0  # nats of an act without a message
SIGNS: dict[bool | None, int] = {True: 1, False: -1, None: 0}


class LabelledMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message and what it does."""

    text: str
    act: Act


class LabelledProgress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message and how far it says the incident is."""

    text: str
    progress: Progress


class LabelledAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message after a check was asked, and the outcome it reports (from 1; 0: none)."""

    check: str
    text: str
    option: int
    lang: Language


def read_messages(path: Path) -> list[LabelledMessage]:
    """The messages of a file of JSON lines."""
    return msgspec.json.Decoder(LabelledMessage).decode_lines(path.read_bytes())


def read_answers(path: Path) -> list[LabelledAnswer]:
    """The answers of a file of JSON lines."""
    return msgspec.json.Decoder(LabelledAnswer).decode_lines(path.read_bytes())


def read_progress(path: Path) -> list[LabelledProgress]:
    """The messages of a file of JSON lines."""
    return msgspec.json.Decoder(LabelledProgress).decode_lines(path.read_bytes())


def _table(texts: Sequence[str], embedder: Embedder) -> FeatureTable:
    """Messages as features."""
    normalise = default_tokenizer().normalise
    features = [list(text_features(normalise(text))) for text in texts]
    return FeatureTable(features, embedder.encode_passages(texts))


def _model(
    table: FeatureTable, classes: Sequence[str], columns: NDArray[np.float64]
) -> LinearModel:
    return table.model(classes, columns, fitted_on=f"{table.matrix.shape[0]} messages")


def _fit(matrix: Any, labels: Sequence[Any], strength: float) -> Any:  # noqa: ANN401
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, max_iter=ROUNDS, fit_intercept=False).fit(matrix, labels)


def _fit_classes(
    rows: Sequence[tuple[str, str]], classes: Sequence[str], strength: float, embedder: Embedder
) -> LinearModel:
    """The model of `rows`, each a text and its class."""
    table = _table([text for text, _ in rows], embedder)
    fitted = _fit(table.matrix, [name for _, name in rows], strength)
    columns = np.zeros((table.matrix.shape[1], len(classes)))
    columns[table.tokens.index(ALWAYS)] = NEVER
    columns[:, [classes.index(name) for name in fitted.classes_]] = fitted.coef_.T
    return _model(table, classes, columns)


def fit_acts(messages: Sequence[LabelledMessage], embedder: Embedder) -> LinearModel:
    """The model of what messages do."""
    rows = [(message.text, message.act) for message in messages]
    return _fit_classes(rows, ACTS, ACT_STRENGTH, embedder)


def fit_progress(
    written: Sequence[LabelledProgress],
    messages: Sequence[LabelledMessage],
    plain_facts: Sequence[LabelledMessage],
    embedder: Embedder,
) -> LinearModel:
    """The model of how far messages say the incident is.

    Messages that say what fixed it say that it is solved; questions and facts say nothing of it.
    """
    told = itertools.cycle(one.text for one in plain_facts)
    rows = [(one.text, one.progress) for one in written]
    for copy in range(1, PROGRESS_COPIES):
        beside = ((next(told), one.text)[:: (-1) ** copy] for one in written)
        rows += [(" ".join(pair), one.progress) for pair, one in zip(beside, written, strict=True)]
    rows += [(one.text, "solved") for one in messages if one.act == "fixed"]
    others = [one for one in messages if one.act not in ("fixed", "not_it")]
    rows += [(one.text, "none") for one in (*others[::OTHERS], *plain_facts[::FACTS])]
    return _fit_classes(rows, PROGRESSES, PROGRESS_STRENGTH, embedder)


def fit_answers(
    answers: Sequence[LabelledAnswer], checks: Iterable[Check], embedder: Embedder
) -> LinearModel:
    """The model of which outcome an answer reports; the outcomes' own words are answers too."""
    by_id = {check.id: check for check in checks}
    rows = [(item.check, item.text, item.option) for item in answers if item.check in by_id]
    written = {check for check, _, _ in rows}
    rows += [
        (check.id, text, number)
        for check in by_id.values()
        if check.id in written
        for number, outcome in enumerate(check.outcomes, start=1)
        for text in (outcome.observation.zh, outcome.observation.en)
    ]
    table = _table([text for _, text, _ in rows], embedder)
    fitted = _fit(table.matrix, [answer_class(c, n) for c, _, n in rows], ANSWER_STRENGTH)
    signs = [
        SIGNS[by_id[check].outcomes[number - 1].trouble] if number != NONE else 0
        for check, _, number in rows
    ]
    told = [place for place, sign in enumerate(signs) if sign]
    trouble = _fit(table.matrix[told], [signs[place] for place in told], TROUBLE_STRENGTH)
    columns = np.hstack([fitted.coef_.T, trouble.coef_.T])
    return _model(table, [*map(str, fitted.classes_), TROUBLE], columns)


def _scorer(model: LinearModel, embedder: Embedder, folder: str) -> TextScorer:
    return TextScorer(model, embedder, default_tokenizer().normalise, folder)


def facts(answers: Sequence[LabelledAnswer], reports: Sequence[Report]) -> list[LabelledMessage]:
    """Messages that tell a fact: some of the answers, and sentences of reports."""
    told = [one.text for one in answers if one.option != NONE][::TOLD]
    said = [sentence for report in reports for sentence in sentences(report.text)]
    said = [one for one in said if not one.rstrip().endswith(("?", "？"))]
    told += said[:: max(len(said) // TOLD_SENTENCES, 1)]
    return [LabelledMessage(text=one, act="tell") for one in told if len(one) in TOLD_CHARS]


def judge_acts(
    messages: Sequence[LabelledMessage],
    plain_facts: Sequence[LabelledMessage],
    embedder: Embedder,
    folds: int,
) -> Counter[tuple[str, str]]:
    """How often a message of an act, left out of the fit, is read as each act.

    `plain_facts` are in every fit.
    """
    pairs: Counter[tuple[str, str]] = Counter()
    for fold in range(folds):
        rest = [item for number, item in enumerate(messages) if number % folds != fold]
        model = fit_acts([*rest, *plain_facts], embedder)
        reader = ActReader(_scorer(model, embedder, acts.FOLDER), ACTS, acts.FOLDER)
        for item in messages[fold::folds]:
            shares = reader.read(item.text)
            pairs[item.act, max(shares, key=shares.__getitem__)] += 1
    return pairs


def judge_progress(
    written: Sequence[LabelledProgress],
    messages: Sequence[LabelledMessage],
    plain_facts: Sequence[LabelledMessage],
    embedder: Embedder,
    folds: int,
) -> Counter[tuple[str, str]]:
    """How often a message written for it, left out of the fit, is read as each progress."""
    pairs: Counter[tuple[str, str]] = Counter()
    for fold in range(folds):
        rest = [item for number, item in enumerate(written) if number % folds != fold]
        model = fit_progress(rest, messages, plain_facts, embedder)
        scorer = _scorer(model, embedder, PROGRESS_FOLDER)
        reader = ProgressReader(scorer, PROGRESSES, PROGRESS_FOLDER)
        for item in written[fold::folds]:
            shares = reader.read(item.text)
            pairs[item.progress, max(shares, key=shares.__getitem__)] += 1
    return pairs


def judge_answers(
    answers: Sequence[LabelledAnswer], checks: Sequence[Check], embedder: Embedder, folds: int
) -> list[tuple[int, int, float]]:
    """The outcome, the one read and its probability, of answers left out of the fit."""
    by_id = {check.id: check for check in checks}
    found = []
    for fold in range(folds):
        rest = [item for number, item in enumerate(answers) if number % folds != fold]
        scorer = _scorer(fit_answers(rest, checks, embedder), embedder, check_answers.FOLDER)
        reader = CheckAnswerReader(scorer)
        for item in answers[fold::folds]:
            shares = reader.read(item.text, by_id[item.check])
            best = max(range(len(shares)), key=shares.__getitem__)
            found.append((item.option, best, shares[best]))
    return found


def class_table(pairs: Counter[tuple[str, str]], classes: Sequence[str]) -> str:
    """The share read rightly, and what each class is taken for."""
    total, right = pairs.total(), sum(n for (act, read), n in pairs.items() if act == read)
    rows = [f"messages {total}, right {right / total:.3f}"]
    for act in classes:
        read = Counter({other: n for (one, other), n in pairs.items() if one == act})
        wrong = ", ".join(f"{o} {n}" for o, n in read.most_common(5) if o != act)
        rows.append(f"{act:10} {read[act]:4} of {read.total():4}  {wrong}")
    return "\n".join(rows)


def answer_table(readings: Sequence[tuple[int, int, float]]) -> str:
    """The share read rightly, and by the probability stated."""
    groups = {
        "that report an outcome": [(a, b) for a, b, _ in readings if a != NONE],
        "that report none": [(a, b) for a, b, _ in readings if a == NONE],
    }
    for low, high in itertools.pairwise((0.0, 0.5, 0.65, 0.75, 0.85, 1.01)):
        name = f"taken with {low} or more"
        groups[name] = [(a, b) for a, b, share in readings if b != NONE and low <= share < high]
    return "\n".join(
        f"answers {name}: {len(pairs)}, right {sum(a == b for a, b in pairs) / len(pairs):.3f}"
        for name, pairs in groups.items()
        if pairs
    )


def main() -> None:
    """Fit, or with ``--folds`` judge the fit on messages it has not seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--data", type=Path, default=shipped_data())
    options = parser.parse_args()
    data: Path = options.data
    messages, answers = read_messages(data / MESSAGES), read_answers(data / ANSWERS)
    written = read_progress(data / PROGRESS)
    embedder, knowledge = embedded_model(data), load_knowledge(data)
    told = facts(answers, load_reports(data / "reports"))
    checks = [check for cause in knowledge.causes for check in cause.checks if check.outcomes]
    if options.folds:
        acts_read = judge_acts(messages, told, embedder, options.folds)
        print(class_table(acts_read, ACTS))  # noqa: T201 - its only output
        progress_read = judge_progress(written, messages, told, embedder, options.folds)
        print(class_table(progress_read, PROGRESSES))  # noqa: T201
        print(answer_table(judge_answers(answers, checks, embedder, options.folds)))  # noqa: T201
    else:
        save_model(data / acts.FOLDER, fit_acts([*messages, *told], embedder))
        save_model(data / PROGRESS_FOLDER, fit_progress(written, messages, told, embedder))
        save_model(data / check_answers.FOLDER, fit_answers(answers, checks, embedder))


if __name__ == "__main__":
    main()
