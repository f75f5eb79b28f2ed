"""What of a person's words is evidence: what they saw, did or tried, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kb.chat.chat import open_intents
from kb.chat.observations import ObservationReader
from kb.service import Service
from tests.kb.chat.conftest import TIMEOUT_LOG, CheckedChat, Talker

NO_STATEMENTS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "no_statements.yaml").read_text(encoding="utf-8")
)
FACT = 0.05  # by which a fact raises its cause, at least; the smallest here rises by .09
MOVED = 0.005  # probability by which the ranking may differ
SHARED = 0.02  # by which others may gain what a denied cause loses


@pytest.fixture(scope="module")
def observations(service: Service) -> ObservationReader:
    """The shipped reader."""
    return open_intents(service.settings.data, service.knowledge).observations


@pytest.mark.parametrize(
    ("sentence", "stated"),
    [
        ("rank 3 was killed by the kernel", "rank 3 was killed by the kernel"),
        ("I guess it is the network", ""),
        ("I suspect the disk, rank 0 writes 40 GB there", "rank 0 writes 40 GB there"),
        ("我怀疑是网络，只有 0 号卡在跑", "只有 0 号卡在跑"),
        ("your network theory is nonsense", ""),
        ("I ran what you gave me and it hangs on one node", None),
        ("py-spy is not installed, all ranks sit in a barrier", "all ranks sit in a barrier"),
        ("进程已经被我杀了，是评估那步不动", "是评估那步不动"),
        ("I'll raise the timeout tomorrow, rank 0 is still saving", "rank 0 is still saving"),
        ("我准备把两台都设成一样", ""),
        ("我没说不是网络", ""),
        ("my colleague says the switch is broken", ""),
    ],
)
def test_what_a_sentence_states(
    observations: ObservationReader, sentence: str, stated: str | None
) -> None:
    """Guesses, talk about our answers and refused checks are cut out, clause by clause."""
    assert observations.stated(sentence) == (sentence if stated is None else stated)


@pytest.mark.parametrize(
    "said",
    [
        "could it be the network?",
        "I guess the network is slow",
        "我猜是网络太慢",
        "your network theory is not convincing, is it?",
    ],
)
def test_a_question_or_a_guess_moves_nothing(talk: Talker, said: str) -> None:
    """It is answered, and no share changes by it."""
    _, reply = talk(TIMEOUT_LOG, said)
    assert reply.changes == ()
    assert reply.statements


def test_who_tells_why_is_believed(talk: Talker) -> None:
    """A sentence that explains counts for the cause the learned reader takes it for."""
    _, reply = talk(
        TIMEOUT_LOG, "the others wait because rank 0 evaluates the whole validation set alone"
    )
    change = next(item for item in reply.changes if item.cause == "rank0-long-work")
    assert change.after > 4 * change.before
    assert "rank 0 evaluates" in change.why[0]


def test_a_negation_in_an_explanation_denies_no_cause(talk: Talker) -> None:
    """“It could not write its checkpoint” speaks for the checkpoint."""
    _, reply = talk(
        TIMEOUT_LOG,
        "One rank crashed because it could not write its FSDP checkpoint shard, disk full.",
    )
    change = next(item for item in reply.changes if item.cause == "checkpoint-io")
    assert change.after > 2 * change.before


def test_what_made_no_difference_is_no_sign_of_help(talk: Talker) -> None:
    """“Going back changed nothing” does not speak for the version."""
    _, reply = talk(TIMEOUT_LOG, "rolling back to 2.5 made no difference")
    assert [item for item in reply.changes if item.cause == "software-version"] == [
        item
        for item in reply.changes
        if item.cause == "software-version" and item.after < item.before
    ]


def ranking_of(chat: CheckedChat, conversation: str) -> dict[str, float]:
    """The probabilities now."""
    verdict = chat.verdict(conversation)
    assert verdict is not None
    return {one.cause: one.probability for one in verdict.ranking.causes}


@pytest.mark.parametrize(
    ("fact", "cause"),
    [
        ("df says /data is at 100 %", "checkpoint-io"),
        ("rank 3 gets 12 batches fewer than the rest", "uneven-data"),
        ("kernel killed python on node 4 for using too much memory", "rank-crash"),
        ("two threads issue collectives at once", "comm-deadlock"),
        ("磁盘写满了", "checkpoint-io"),
        ("两个进程都跑在 0 号卡上", "device-mapping"),
        ("第一步编译花了 25 分钟", "timeout-too-short"),
    ],
)
def test_a_reported_fact_moves_the_cause_of_its_topic(
    chat: CheckedChat, fact: str, cause: str
) -> None:
    """Also where no cue has its words, and where it could be taken as an answer to the check."""
    identifier = chat.say(TIMEOUT_LOG).conversation
    before = ranking_of(chat, identifier)
    chat.say(fact, conversation=identifier)
    assert ranking_of(chat, identifier)[cause] >= before[cause] + FACT
    assert chat.conversation(identifier).remarks == (fact,)


@pytest.mark.parametrize("item", NO_STATEMENTS, ids=[one["text"] for one in NO_STATEMENTS])
def test_what_states_nothing_is_no_evidence(chat: CheckedChat, item: dict[str, Any]) -> None:
    """Requests, questions, thanks, talk and advice move nothing; a denial only what it denies."""
    identifier = chat.say(TIMEOUT_LOG).conversation
    before = ranking_of(chat, identifier)
    chat.say(item["text"], conversation=identifier)
    after = ranking_of(chat, identifier)
    rose = {cause: after[cause] - before[cause] for cause in before}
    down = item.get("down", [])
    assert all(by <= (SHARED if down else MOVED) for by in rose.values())
    assert all(rose[cause] <= 0 for cause in down)
    assert down or all(by >= -MOVED for by in rose.values())
