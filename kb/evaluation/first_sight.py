"""First sight: threads nobody here has read, asked once, and the record of such batches.

What was read while rules, words or weights were written judges them no more. A batch is labelled by
somebody who does not see the answers, asked once, and recorded before anything is learned from it;
after that it is spent. The posts themselves are no part of the project.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kb.errors import InputError
from kb.evaluation.figures import TITLES, Prediction, quality
from kb.evaluation.intervals import share
from kb.evaluation.published import RECORD, BatchRecord, FirstSightAnswer, load_records
from kb.service import Service
from kb.train.samples import addresses, thread_address
from kb.train.threads import LabelledThread
from kb.types.vocabulary import UNKNOWN, DiagnosisStatus

SURE = 0.8  # stated probability from which on an answer should rarely be wrong
CURRENT = dt.timedelta(days=730)
DIGITS = 3


class BatchPost(msgspec.Struct, frozen=True):
    """A fresh thread: what its reporter wrote first, and the cause its end confirms."""

    url: str
    date: str
    lang: str
    cause: str
    text: str
    also: tuple[str, ...] = ()
    log: str = ""
    framework: str = ""


FIRST_SIGHT_TITLES = {
    **TITLES,
    "sure_right": f"right where at least {SURE:.0%} is stated",
    "sure": f"share with at least {SURE:.0%} stated",
    "answered": "share with a cause",
    "refused": "refused as no timeout",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPost:
    """A post, the product's prediction, and its status."""

    post: BatchPost
    prediction: Prediction
    status: DiagnosisStatus


def load_batch(path: Path) -> tuple[BatchPost, ...]:
    """Read a batch, one JSON object a line.

    Raises:
        InputError: the file is missing, empty, or a line is no such object.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", todo="give the path of a batch") from error
    posts = []
    for number, line in enumerate(lines, start=1):
        try:
            posts.append(msgspec.json.decode(line, type=BatchPost))
        except msgspec.DecodeError as error:
            raise InputError(f"{path}, line {number}: {error}", todo="correct the line") from error
    if not posts:
        raise InputError(f"{path}: no posts", todo="one JSON object a line")
    return tuple(posts)


def ask(service: Service, posts: Sequence[BatchPost]) -> list[AskedPost]:
    """Ask the product about every post, without cases that stand on the thread.

    Raises:
        InputError: a cause is none of ours.
    """
    known = {cause.id for cause in service.knowledge.causes} - {UNKNOWN}
    answers = []
    for post in posts:
        if post.cause not in known:
            raise InputError(f"{post.url}: no cause {post.cause!r}", todo="see data/causes.yaml")
        text = "\n\n".join(part for part in (post.text, post.log) if part)
        address = thread_address(post.url)
        own = [case.id for case in service.knowledge.cases if address in addresses(case)]
        verdict = service.judge(service.read_text(text), exclude=own)
        thread = LabelledThread(
            id=post.url,
            url=post.url,
            repo=post.framework,
            language=post.lang,
            text=text,
            log=post.log,
            cause=post.cause,
            also=tuple(cause for cause in post.also if cause in known),
            measurable=True,
        )
        prediction = Prediction.of(thread, verdict.ranking)
        answers.append(AskedPost(post=post, prediction=prediction, status=verdict.status))
    return answers


def record_of(
    answers: Sequence[AskedPost], *, batch: str, date: dt.date, version: str
) -> BatchRecord:
    """The figures of a batch."""
    predictions = [item.prediction for item in answers]
    sure = [item for item in predictions if item.confidence >= SURE]
    figures = quality(predictions) | {
        "sure": share(predictions, lambda item: item.confidence >= SURE),
        "answered": share(answers, lambda item: item.status == "diagnosed"),
        "refused": share(answers, lambda item: item.status == "no_timeout"),
    }
    if sure:
        figures["sure_right"] = share(sure, lambda item: item.rank == 1)
    since = (date - CURRENT).isoformat()
    names = "\n".join(sorted(thread_address(item.post.url) for item in answers))
    return BatchRecord(
        batch=batch,
        date=date.isoformat(),
        version=version,
        digest=hashlib.sha256(names.encode()).hexdigest()[:16],
        posts=len(answers),
        zh=sum(item.post.lang != "en" for item in answers),
        recent=sum(item.post.date >= since for item in answers),
        figures={
            name: (round(item.mean, DIGITS), round(item.low, DIGITS), round(item.high, DIGITS))
            for name, item in figures.items()
            if item.mean is not None and item.low is not None and item.high is not None
        },
        answers=tuple(
            FirstSightAnswer(
                cause=item.post.cause,
                named=item.prediction.causes[0],
                confidence=round(item.prediction.confidence, DIGITS),
                rank=item.prediction.rank,
                lang="en" if item.post.lang == "en" else "zh",
                log=bool(item.post.log),
            )
            for item in answers
        ),
    )


def append_record(folder: Path, record: BatchRecord) -> None:
    """Add a batch to the record.

    Raises:
        InputError: it was asked before: nothing judges twice.
    """
    for earlier in load_records(folder):
        if earlier.digest == record.digest:
            raise InputError(
                f"these threads were asked on {earlier.date} as {earlier.batch!r}",
                todo="ask threads nobody has read; a batch judges once",
            )
    with (folder / RECORD).open("ab") as file:
        file.write(msgspec.json.encode(record) + b"\n")
