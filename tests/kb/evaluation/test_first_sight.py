"""A batch of fresh threads: read, asked once, recorded once."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from kb.errors import DataError, InputError
from kb.evaluation.figures import Prediction
from kb.evaluation.first_sight import (
    AskedPost,
    BatchPost,
    append_record,
    ask,
    load_batch,
    record_of,
)
from kb.evaluation.published import RECORD, load_records
from kb.service import Service
from kb.train.threads import LabelledThread

OOM = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
DAY = dt.date(2026, 3, 1)


def post(number: int = 1, **values: str) -> BatchPost:
    """A thread on which a rank ran out of memory."""
    fields = {"date": "2025-06-01", "lang": "en", "cause": "rank-crash", "text": "It hangs."}
    return BatchPost(url=f"https://example.org/{number}", **(fields | values))  # type: ignore[arg-type]


def asked(place: int, sure: float, status: str = "diagnosed", number: int = 1) -> AskedPost:
    """An answer that has the right cause at `place`, from 0, and gives its first one so much."""
    causes = ["network-fault", "shm-limits", "p2p-topology", "gpu-hardware"]
    causes.insert(place, "rank-crash")
    one = post(number)
    thread = LabelledThread(
        id=one.url,
        url=one.url,
        repo="",
        language="en",
        text="",
        log="",
        cause=one.cause,
        also=(),
        measurable=True,
    )
    shares = (sure, *[(1 - sure) / 4] * 4)
    prediction = Prediction(thread=thread, causes=tuple(causes), probabilities=shares)
    return AskedPost(post=one, prediction=prediction, status=status)  # type: ignore[arg-type]


def test_figures_of_a_batch() -> None:
    """First right, among three, what is stated surely, what is answered and refused."""
    answers = [
        asked(0, 0.9, number=1),
        asked(2, 0.85, number=2),
        asked(3, 0.3, "unknown", number=3),
        asked(0, 0.4, "no_timeout", number=4),
    ]
    record = record_of(answers, batch="spring", date=DAY, version="v")
    means = {name: figure[0] for name, figure in record.figures.items()}
    assert (record.posts, record.zh, record.recent) == (4, 0, 4)
    assert (means["top1"], means["top3"]) == (0.5, 0.75)
    assert (means["sure"], means["sure_right"]) == (0.5, 0.5)
    assert (means["answered"], means["refused"]) == (0.5, 0.25)


def test_age_and_language_are_counted() -> None:
    """Threads older than two years are no recent ones; mixed ones count as Chinese."""
    old = AskedPost(
        post=post(2, date="2024-02-28", lang="mixed"),
        prediction=asked(0, 0.5).prediction,
        status="diagnosed",
    )
    record = record_of([asked(0, 0.5), old], batch="b", date=DAY, version="v")
    assert (record.zh, record.recent) == (1, 1)


def test_a_batch_judges_once(tmp_path: Path) -> None:
    """The same threads are not recorded twice, whatever the batch is called and their order."""
    both = [asked(0, 0.5, number=1), asked(1, 0.5, number=2)]
    first = record_of(both, batch="a", date=DAY, version="v")
    append_record(tmp_path, first)
    with pytest.raises(InputError, match="asked on 2026-03-01 as 'a'"):
        append_record(tmp_path, record_of(both[::-1], batch="b", date=DAY, version="w"))
    other = record_of(both[:1], batch="c", date=DAY, version="v")
    append_record(tmp_path, other)
    assert load_records(tmp_path) == (first, other)


def test_the_product_is_asked(shipped: Service) -> None:
    """An answer to what stands in the post: words and log."""
    (answer,) = ask(shipped, [post(text="Training hangs.", log=OOM)])
    assert (answer.prediction.rank, answer.status) == (1, "diagnosed")
    with pytest.raises(InputError, match="no cause 'gremlins'"):
        ask(shipped, [post(cause="gremlins")])


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "no posts"), ("[]\n", "line 1"), ('{"url": "u"}\n', "line 1: Object missing")],
)
def test_bad_batches(tmp_path: Path, text: str, says: str) -> None:
    """An empty or damaged batch is refused with its line."""
    path = tmp_path / "batch.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        load_batch(path)
    with pytest.raises(InputError, match="missing"):
        load_batch(tmp_path / "missing.jsonl")


def test_a_batch_is_read(tmp_path: Path) -> None:
    """Fields the product does not know are left alone."""
    path = tmp_path / "batch.jsonl"
    row = {"url": "u", "date": "2025", "lang": "zh", "cause": "c", "text": "t", "why": "w"}
    path.write_text(json.dumps(row) + "\n")
    (read,) = load_batch(path)
    assert (read.text, read.also, read.log) == ("t", (), "")


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    """So is a record that breaks its schema."""
    (tmp_path / RECORD).write_text("{}\n")
    with pytest.raises(DataError, match=RECORD):
        load_records(tmp_path)


def test_the_readme_leads_with_the_last_batches(root: Path, data_dir: Path) -> None:
    """Its table says what the record says."""
    rows = {
        line.split("|")[1].strip().split(" (")[0]: line
        for line in (root / "README.md").read_text("utf-8").splitlines()
        if line.startswith("| 20")
    }
    last = load_records(data_dir / "golden")[-3:]
    assert set(rows) == {record.batch for record in last}
    for record in last:
        cells = [cell.strip() for cell in rows[record.batch].split("|")]
        names = ("top1", "top1_also", "top3")
        means = [f"{record.figures[name][0]:.2f}".lstrip("0") for name in names]
        assert cells[2:6] == [str(record.posts), *means]


def test_a_record_holds_its_answers() -> None:
    """Without the posts: what was right, what was named and how surely."""
    record = record_of([asked(0, 0.9), asked(2, 0.8, number=2)], batch="b", date=DAY, version="v")
    first, second = record.answers
    assert (first.cause, first.named, first.confidence, first.rank) == (
        "rank-crash",
        "rank-crash",
        0.9,
        1,
    )
    assert (second.named, second.rank, second.lang, second.log) == ("network-fault", 3, "en", False)
