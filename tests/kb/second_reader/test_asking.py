"""A real server is asked, and whatever it does the first answer stands."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from kb.diagnose.verdict import Verdict
from kb.errors import StoreError
from kb.second_reader.answer import UNTESTED_TRUST, NoAnswer, Reason
from kb.second_reader.asking import (
    TRUST_FILE,
    MeasuredTrust,
    SecondReader,
    load_trust,
    printed_address,
    save_trust,
)
from kb.second_reader.client import ModelClient
from kb.second_reader.limits import Limits, Usage
from kb.service import Service
from tests.kb.second_reader.conftest import ChatServer

PASTE = (
    "Training on two nodes hangs after an hour, the symbol error counters of one port grow.\n"
    "[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, "
    "Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
)
Make = Callable[..., SecondReader]


@pytest.fixture
def make(server: ChatServer, shipped: Service, tmp_path: Path) -> Make:
    """Makes readers that ask the server."""

    def reader(
        limit_s: float = 5.0, trust: float | None = 1.0, minute: int = 100, day: int = 100
    ) -> SecondReader:
        client = ModelClient(server.url, "tiny", "secret-key", limit_s=limit_s)
        return SecondReader(
            client, shipped.knowledge, Limits(minute, day), trust=trust, home=tmp_path
        )

    return reader


@pytest.fixture
def verdict(shipped: Service) -> Verdict:
    """Ours."""
    return shipped.judge(shipped.read_text(PASTE))


def test_a_trusted_model_changes_the_answer(
    server: ChatServer, make: Make, verdict: Verdict, shipped: Service
) -> None:
    """Its cause comes first with its quote; model, cost and question are told."""
    server.says({"shm-limits": 0.95}, shm_limits="Training on two nodes hangs")
    better = make().read(verdict)
    diagnosis = shipped.render(better, language="en")
    assert diagnosis.causes[0].id == "shm-limits"
    evidence = [e for e in diagnosis.causes[0].evidence if e.kind == "language_model"]
    assert [e.quote for e in evidence] == ["Training on two nodes hangs"]
    second = diagnosis.second_reader
    assert second is not None
    assert (second.model, second.tokens, second.ask, second.why) == (
        "tiny-1",
        750,
        "Which switch?",
        "",
    )
    assert {one.name for one in diagnosis.readers} >= {"evidence", "language_model"}
    (alone,) = (one.top[0] for one in diagnosis.readers if one.name == "language_model")
    assert (alone.id, alone.probability > 0.7) == ("shm-limits", True)
    assert server.keys == ["Bearer secret-key"]


def test_it_is_given_the_report_and_not_our_ranking(
    server: ChatServer, make: Make, verdict: Verdict
) -> None:
    """The words as data, every cause, what was observed; no probability of ours."""
    server.says({"rank-crash": 0.5})
    make().read(verdict)
    (question,) = server.questions
    system, user = (message["content"] for message in question["messages"])
    assert "symbol error counters" in user
    assert "WorkNCCL(SeqNum=9" in user
    assert all(scored.cause in system for scored in verdict.ranking.causes)
    shares = [f"{scored.probability:.2f}" for scored in verdict.ranking.causes[:1]]
    assert not any(share in user for share in shares)
    assert (question["temperature"], question["model"]) == (0, "tiny")


def test_secrets_do_not_leave(server: ChatServer, make: Make, shipped: Service) -> None:
    """What is sent was redacted."""
    server.says({"rank-crash": 0.5})
    token = "hf_" + "a1B2c3D4" * 4
    make().read(shipped.judge(shipped.read_text(f"export HF_TOKEN={token}\nuse {token}\n{PASTE}")))
    assert token not in json.dumps(server.questions)


BEHAVIOURS: dict[str, dict[str, object]] = {
    "refusal": {"message": {"role": "assistant", "content": None, "refusal": "no"}},
    "empty": {"message": {"role": "assistant", "content": " "}},
    "no message": {"message": {"role": "assistant"}},
    "nonsense": {"answer": lambda _: "The weather is fine."},
    "half": {"answer": lambda _: '{"causes": {"shm-limits": 1.'},
    "length": {"answer": lambda _: '{"causes": {"shm-limits": 1.', "finish": "length"},
    "thoughts": {"message": {"content": None, "reasoning": '{"causes": {"shm-limits": 1.0}}'}},
    "cut": {"cut": 40},
    "cut stream": {"cut": 400, "always_streams": True},
    "error": {"status": 500},
    "unauthorised": {"status": 401},
    "busy": {"status": 429},
    "slow": {"delay_s": 3.0},
    "drops": {"drop": 0.05},
    "huge": {"answer": lambda _: "x" * (5 << 20)},
}


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("refusal", "refused"),
        ("empty", "empty"),
        ("no message", "empty"),
        ("nonsense", "no_json"),
        ("half", "no_json"),
        ("length", "length"),
        ("thoughts", "empty"),
        ("cut", "broken"),
        ("cut stream", "broken"),
        ("error", "status"),
        ("unauthorised", "key"),
        ("busy", "busy"),
        ("slow", "slow"),
        ("drops", "slow"),
        ("huge", "long"),
    ],
)
def test_whatever_goes_wrong_the_first_answer_stands(
    server: ChatServer, make: Make, verdict: Verdict, shipped: Service, how: str, reason: str
) -> None:
    """With one line that says why, in either language; it takes no longer than the limit."""
    server.says({"shm-limits": 1.0})
    for name, value in BEHAVIOURS[how].items():
        setattr(server, name, value)
    started = time.monotonic()
    after = make(limit_s=1.0).read(verdict)
    assert time.monotonic() - started < 3.0
    assert after.ranking == verdict.ranking
    assert after.second is not None
    assert after.second.why == reason
    for language in ("zh", "en"):
        second = shipped.render(after, language=language).second_reader  # type: ignore[arg-type]
        assert second is not None
        assert second.why


def test_an_address_where_nobody_listens(server: ChatServer, make: Make, verdict: Verdict) -> None:
    """Is told at once."""
    reader = make()
    server.close()
    after = reader.read(verdict)
    assert after.second is not None
    assert after.second.why == "unreachable"


def test_an_older_server_is_asked_without_response_format(
    server: ChatServer, make: Make, verdict: Verdict
) -> None:
    """It refuses what it does not know; the question is put once more without."""
    server.is_old = True
    server.says({"shm-limits": 0.9})
    after = make().read(verdict)
    assert after.ranking.causes[0].cause == "shm-limits"
    assert ["response_format" in question for question in server.questions] == [True, False]


def test_one_question_an_incident(server: ChatServer, make: Make, verdict: Verdict) -> None:
    """Several who ask at once wait for the same answer, and who asks later gets it again."""
    server.says({"rank-crash": 0.9})
    server.delay_s = 0.3
    reader = make()
    after: list[Verdict] = []
    threads = [
        threading.Thread(target=lambda: after.append(reader.read(verdict))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after.append(reader.read(verdict))
    assert len(server.questions) == 1
    assert all(one.ranking == after[0].ranking for one in after)


def test_who_does_not_wait_gets_it_later(server: ChatServer, make: Make, verdict: Verdict) -> None:
    """The question goes on; its answer is there when asked again."""
    server.says({"rank-crash": 0.9})
    server.delay_s = 0.5
    reader = make()
    early = reader.read(verdict, wait_s=0.05)
    assert early.second is not None
    assert (early.second.why, early.ranking) == ("waiting", verdict.ranking)
    late = reader.read(verdict, wait_s=5)
    assert late.second is not None
    assert late.second.why == ""
    assert len(server.questions) == 1


def test_a_failure_is_asked_again(server: ChatServer, make: Make, verdict: Verdict) -> None:
    """Answers stay; a failure only for those who look without waiting."""
    server.status = 500
    reader = make()
    reader.read(verdict)
    for _ in range(3):
        looked = reader.read(verdict, wait_s=0)
        assert looked.second is not None
        assert looked.second.why == "status"
    assert len(server.questions) == 1
    server.status = 200
    server.says({"rank-crash": 0.9})
    after = reader.read(verdict)
    assert after.second is not None
    assert after.second.why == ""


def test_limits_of_a_minute_and_a_day() -> None:
    """Both are kept; an hour later the minute's is open again."""
    now = [0.0]
    limits = Limits(2, 3, clock=lambda: now[0])
    limits.take()
    limits.take()
    with pytest.raises(NoAnswer, match="limit_minute"):
        limits.take()
    now[0] = 3600
    limits.take()
    with pytest.raises(NoAnswer, match="limit_day"):
        limits.take()
    now[0] = 90_000
    limits.take()


def test_what_was_asked_and_spent_is_counted(
    server: ChatServer, make: Make, shipped: Service
) -> None:
    """However it ended; an answer that is kept costs nothing again."""
    server.says({"rank-crash": 0.9})
    reader = make(minute=3, day=9)
    words = ("today", "yesterday", "on Monday", "on Friday")
    verdicts = [shipped.judge(shipped.read_text(f"{PASTE}\nIt began {one}.")) for one in words]
    reader.read(verdicts[0])
    reader.read(verdicts[0])
    server.finish, server.message = "length", {"content": "{"}
    after = reader.read(verdicts[1])
    assert after.second is not None
    assert after.second.why_values == {"tokens": "50"}
    server.status = 500
    reader.read(verdicts[2])
    reader.read(verdicts[3])
    assert reader.usage() == Usage(
        per_minute=3,
        per_day=9,
        questions_minute=3,
        questions_day=3,
        tokens_day=1500,
        outcomes={"answered": 1, "length": 1, "limit_minute": 1, "status": 1},
        tokens_in=1400,
        tokens_out=100,
    )


def test_a_day_forgets_what_the_start_counts() -> None:
    """The last minute and day move on, the counts since the start grow."""
    now = [0.0]
    limits = Limits(5, 5, clock=lambda: now[0])
    seen = []
    for hours in (0, 0, 12, 25):
        now[0] = 3600.0 * hours
        limits.take()
        limits.count("answered", 7, 3)
        usage = limits.usage()
        seen.append((usage.questions_minute, usage.questions_day, usage.tokens_day))
    assert seen == [(1, 1, 10), (2, 2, 20), (1, 3, 30), (1, 2, 20)]
    assert (usage.tokens_in, usage.tokens_out, usage.outcomes) == (28, 12, {"answered": 4})


def test_every_reason_has_its_words(shipped: Service) -> None:
    """In both languages."""
    labels = {name.removeprefix("second.") for name in shipped.knowledge.labels}
    assert set(get_args(Reason)) - labels == set()


def test_nothing_is_asked_about_other_texts(
    server: ChatServer, make: Make, shipped: Service
) -> None:
    """A recipe is no incident."""
    other = shipped.judge(shipped.read_text("Stir the eggs and bake them for ten minutes."))
    assert make().read(other) == other
    assert server.questions == []


def test_trust_is_measured_set_or_usual(make: Make, tmp_path: Path) -> None:
    """What was set goes before what was measured; a damaged file is told."""
    assert make(trust=None).trust == UNTESTED_TRUST
    save_trust(tmp_path, "tiny", MeasuredTrust(trust=0.8, reports=59, date="2026-01-01"))
    assert make(trust=None).trust == 0.8
    assert make(trust=0.1).trust == 0.1
    (tmp_path / TRUST_FILE).write_text("{")
    with pytest.raises(StoreError, match=TRUST_FILE):
        load_trust(tmp_path)


def test_measuring_a_model_is_not_limited(
    server: ChatServer, make: Make, shipped: Service, verdict: Verdict
) -> None:
    """The limits are for answers that people wait for; the golden set has more reports."""
    server.says({"rank-crash": 0.5})
    reader = make(minute=1, day=1)
    other = shipped.judge(shipped.read_text(f"{PASTE}\nIt began today."))
    assert all(reader.ask_about(one).answer is not None for one in (verdict, other))
    reader.read(shipped.judge(shipped.read_text(f"{PASTE}\nIt began yesterday.")))
    assert len(server.questions) == 3  # one question is left, as before


@pytest.mark.parametrize(
    ("address", "printed"),
    [
        ("https://me:pass@models.example:8443/v1", "https://models.example:8443/v1"),
        ("http://[::1]:11434/v1/?token=abc#x", "http://[::1]:11434/v1/"),
    ],
)
def test_an_address_is_printed_without_secrets(address: str, printed: str) -> None:
    """Names, passwords and queries in it are left out."""
    assert printed_address(address) == printed
