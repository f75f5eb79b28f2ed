"""The headline says what happened, from the evidence, in a few words and in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.knowledge.load import Knowledge
from kb.service import Service

WORDS = 15
EXAMPLES = Path("data/examples")


def _watchdog(rank: int, op: str = "ALLREDUCE", seq: int = 41) -> str:
    return (
        f"[rank{rank}]:[E519 23:24:19.64 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught "
        f"collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=8, NumelOut=8, "
        "Timeout(ms)=600000) ran for 600021 milliseconds before timing out."
    )


def _oom(rank: int) -> str:
    return (
        f"[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
        "GPU 0 has a total capacity of 79.1 GiB"
    )


@pytest.mark.parametrize(
    ("language", "headline"),
    [
        ("en", "Rank 5 ran out of GPU memory; 2 ranks waited 10 min in ALLREDUCE"),
        ("zh", "rank 5显存耗尽；2 个 rank 在 ALLREDUCE 里等了 10 分钟"),
    ],
)
def test_the_first_error_comes_before_the_wait(
    service: Service, language: str, headline: str
) -> None:
    """The first error and who waited for it."""
    text = "\n".join([_oom(5), _watchdog(0), _watchdog(1)])
    answer = service.diagnose_text(text, language="zh" if language == "zh" else "en")
    assert answer.headline.replace("Rank", "rank") == headline.replace("Rank", "rank")


def test_an_exception_is_called_by_its_name(service: Service) -> None:
    """`ValueError` tells more than "an exception"."""
    text = "[rank3]: ValueError: need at least one array to stack\n" + _watchdog(0)
    assert service.diagnose_text(text, language="en").headline.startswith(
        "Rank 3 raised ValueError"
    )


def test_words_alone_say_where_it_hung(service: Service) -> None:
    """Without a log the stage is all that is known."""
    text = "My DDP training on 8 GPUs hangs while saving the checkpoint, no error is printed."
    assert "checkpoint" in service.diagnose_text(text, language="en").headline


def test_what_is_no_timeout_says_so(service: Service) -> None:
    """Nothing is to be done then."""
    answer = service.diagnose_text("How do I bake bread with rye flour?", language="en")
    assert (answer.headline, answer.first_fix) == ("No sign of a timeout or hang", None)


def test_headlines_of_the_examples_are_short(service: Service) -> None:
    """At most 15 words."""
    for path in sorted(EXAMPLES.iterdir()):
        answer = service.diagnose_text(path.read_text(), language="en")
        assert 0 < len(answer.headline.split()) <= WORDS, path.name


def test_words_of_events_name_the_rank_or_nobody(knowledge: Knowledge) -> None:
    """No other braces stand in them, and they are short."""
    for kind in knowledge.events:
        for text in (kind.headline.zh, kind.headline.en) if kind.headline else ():
            assert len(text.format(who="rank 5").split()) <= 10, kind.id


def test_the_first_step_is_the_first_fix_of_the_first_cause(service: Service) -> None:
    """Where there is a verdict."""
    answer = service.diagnose_text("\n".join([_oom(5), _watchdog(0)]), language="en")
    assert answer.first_fix is not None
    assert answer.first_fix.kind == "fix"
    assert answer.first_fix.fix == answer.causes[0].fixes[0].id
