"""The headline says what happened, from the evidence, in a few words and in both languages."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from kb.knowledge.load import Knowledge
from kb.service import Service
from kb.types.vocabulary import Stage

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
        ("zh", "rank 5 显存耗尽；2 个 rank 在 ALLREDUCE 里等了 10 分钟"),
    ],
)
def test_the_first_error_comes_before_the_wait(
    service: Service, language: str, headline: str
) -> None:
    """The first error and who waited for it."""
    text = "\n".join([_oom(5), _watchdog(0), _watchdog(1)])
    answer = service.diagnose_text(text, language="zh" if language == "zh" else "en")
    assert answer.headline == headline


MISMATCH = "\n".join(
    [_watchdog(7, "BROADCAST"), *(_watchdog(rank, "ALLREDUCE") for rank in range(7))]
)
BEHIND = "\n".join(
    [_watchdog(3, "ALLREDUCE", 40), *(_watchdog(rank, "_ALLGATHER_BASE") for rank in (0, 1, 2, 4))]
)


@pytest.mark.parametrize(
    ("text", "english", "chinese"),
    [
        pytest.param(
            MISMATCH,
            "Rank 7 ran another collective than the others; 7 ranks waited 10 min in ALLREDUCE",
            "rank 7 执行的集合通信与其他不同；7 个 rank 在 ALLREDUCE 里等了 10 分钟",
            id="the-odd-one-is-read-first",
        ),
        pytest.param(
            BEHIND,
            "Rank 3 fell behind the others; 4 ranks waited 10 min in _ALLGATHER_BASE",
            "rank 3 落后于其他 rank；4 个 rank 在 _ALLGATHER_BASE 里等了 10 分钟",
            id="the-one-behind-waits-elsewhere",
        ),
        pytest.param(
            "\n".join([_oom(2), *map(_watchdog, range(4))]),
            "Rank 2 ran out of GPU memory; 3 ranks waited 10 min in ALLREDUCE",
            "rank 2 显存耗尽；3 个 rank 在 ALLREDUCE 里等了 10 分钟",
            id="the-failed-one-reports-a-timeout-too",
        ),
    ],
)
def test_the_rank_at_fault_is_not_counted_among_those_that_waited(
    service: Service, text: str, english: str, chinese: str
) -> None:
    """Who failed, and what the others waited in: theirs, not what the odd rank ran."""
    assert service.diagnose_text(text, language="en").headline == english
    assert service.diagnose_text(text, language="zh").headline == chinese


def test_an_operation_is_named_once(service: Service) -> None:
    """All ranks stand in it: how long is all that is left to say."""
    works = (
        f"{_watchdog(rank)}\n[rank{rank}]:[E519 23:24:19.65 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG "
        f"GUID 0(default_pg) Rank {rank}] Exception (either an error or timeout) detected by "
        "watchdog at work: 41, last enqueued NCCL work: 44, last completed NCCL work: 40."
        for rank in range(4)
    )
    text = "\n".join(works)
    said = [service.diagnose_text(text, language=lang).headline for lang in ("en", "zh")]
    assert said == [
        "All ranks entered ALLREDUCE and none finished; 4 ranks waited 10 min",
        "所有 rank 都进入了 ALLREDUCE，没有一个完成；4 个 rank 等了 10 分钟",
    ]


@pytest.mark.parametrize(
    ("line", "english", "chinese"),
    [
        (
            (
                "kernel: [1209921.540031] NVRM: Xid (PCI:0000:b4:00): 79, pid='<unknown>', "
                "name=<unknown>, GPU has fallen off the bus."
            ),
            "The GPU fell off the bus; 2 ranks waited 10 min in ALLREDUCE",
            "GPU 掉卡；2 个 rank 在 ALLREDUCE 里等了 10 分钟",
        ),
        (
            (
                "kernel: [883120.441907] bond0: (slave ens3f1): link status definitely "
                "down, disabling slave"
            ),
            "A network link went down; 2 ranks waited 10 min in ALLREDUCE",
            "网卡链路中断；2 个 rank 在 ALLREDUCE 里等了 10 分钟",
        ),
        (
            (
                "dl-node3 kernel: [883120.441907] bond0: (slave ens3f1): link status definitely "
                "down, disabling slave"
            ),
            "A network link of dl-node3 went down; 2 ranks waited 10 min in ALLREDUCE",
            "dl-node3 的网卡链路中断；2 个 rank 在 ALLREDUCE 里等了 10 分钟",
        ),
    ],
)
def test_of_a_rank_nobody_knows_nothing_is_said(
    service: Service, line: str, english: str, chinese: str
) -> None:
    """A GPU fell off the bus, not “that of a process”; the line's host is named."""
    text = "\n".join([line, _watchdog(0), _watchdog(1)])
    assert service.diagnose_text(text, language="en").headline == english
    assert service.diagnose_text(text, language="zh").headline == chinese


def test_an_exception_is_called_by_its_name(service: Service) -> None:
    """`ValueError` tells more than "an exception"."""
    text = "[rank3]: ValueError: need at least one array to stack\n" + _watchdog(0)
    assert service.diagnose_text(text, language="en").headline.startswith(
        "Rank 3 raised ValueError"
    )


@pytest.mark.parametrize(
    ("text", "english", "chinese"),
    [
        pytest.param(
            "My DDP training on 8 GPUs hangs while saving the checkpoint, no error is printed.",
            "The DDP job on 8 GPUs hung while saving; no error printed",
            "8 卡的 DDP 任务在保存时卡住；没有报错",
            id="scale-moment-symptom",
        ),
        pytest.param(
            "用两台机器做 deepspeed 训练，评估时卡住，GPU 利用率一直 100%",
            "The DeepSpeed job on 2 nodes hung in evaluation; GPUs at 100%",
            "2 机的 DeepSpeed 任务在评估时卡住；GPU 利用率 100%",
            id="chinese-numbers",
        ),
        pytest.param(
            "multi-node training: all_reduce times out",
            "The job on several nodes timed out in all_reduce",
            "多机的任务在 all_reduce 处超时",
            id="operation-and-timeout",
        ),
        pytest.param(
            "vllm +zero2 hangs",
            "The vLLM server hung: “vllm +zero2 hangs”",
            "vLLM 服务卡住：“vllm +zero2 hangs”",
            id="own-words-where-nothing-else-is-known",
        ),
        pytest.param(
            "用8卡训练glm模型会卡住，RTX 3090 GPUs",
            "The job on 8 GPUs hung: “用8卡训练glm模型会卡住，RTX 3090 GPUs”",
            "8 卡的任务卡住：“用8卡训练glm模型会卡住，RTX 3090 GPUs”",
            id="models-are-no-numbers-and-quotes-stay",
        ),
    ],
)
def test_words_alone_say_what_hung_and_when(
    service: Service, text: str, english: str, chinese: str
) -> None:
    """Without a log: the job, its size, the moment, what else was seen; else the own words."""
    assert service.diagnose_text(text, language="en").headline == english
    assert service.diagnose_text(text, language="zh").headline == chinese


def test_long_words_are_cut(service: Service) -> None:
    """Of a long sentence as much as a headline holds, in either language."""
    for text in ("the training hangs " + "and hangs " * 40, "训练卡住" * 40):
        line = service.diagnose_text(text, language="en").headline
        assert len(line.split()) <= WORDS
        assert line.endswith("…”")
        assert len(line) < 90


def test_the_timeout_that_says_most_is_told(service: Service) -> None:
    """A link that was not set up, not the call that failed for it."""
    text = (EXAMPLES / "ascend-link-setup.log").read_text()
    answer = service.diagnose_text(text, language="en")
    assert answer.headline == "HCCL could not set up its links in time"
    assert service.diagnose_text(text, language="zh").headline == "HCCL 建链超时"


def test_an_operation_keeps_its_spelling_and_gets_its_stage(service: Service) -> None:
    """`recv` is a name, no word that begins a sentence; where the run stood is said beside it."""
    work = "Watchdog caught collective operation timeout: WorkNCCL(OpType={}, Timeout(ms)=60000)"
    late = "Saving model checkpoint to /ckpt\n" + work
    said = [
        service.diagnose_text(text.format(op), language="en").headline
        for text, op in ((work, "recv"), (late, "BROADCAST"))
    ]
    assert said == [
        "recv did not finish in 1 min",
        "BROADCAST did not finish in 1 min while saving a checkpoint",
    ]


def test_what_is_no_timeout_says_so(service: Service) -> None:
    """Nothing is to be done then."""
    answer = service.diagnose_text("How do I bake bread with rye flour?", language="en")
    assert (answer.headline, answer.first_fix) == ("No sign of a timeout or hang", None)


def test_an_error_without_a_timeout_is_named(service: Service) -> None:
    """Whoever pastes an ordinary error learns that it is one."""
    text = Path("tests/samples/negatives/train-shape-mismatch.log").read_text()
    said = [service.diagnose_text(text, language=lang).headline for lang in ("en", "zh")]
    assert said == [
        "Rank 0 raised RuntimeError; no sign of a timeout or hang",
        "rank 0 抛出 RuntimeError；没有看到超时或卡住的迹象",
    ]


def test_headlines_of_the_examples_are_short(service: Service) -> None:
    """At most 15 words, those of dumps and of many ranks too."""
    texts = [path.read_text() for path in sorted(EXAMPLES.iterdir())]
    culprit = "\n".join([_oom(5), *map(_watchdog, range(4)), _watchdog(6, "_ALLGATHER_BASE")])
    for text in (*texts, culprit):
        answer = service.diagnose_text(text, language="en")
        assert 0 < len(answer.headline.split()) <= WORDS, text[:80]


def test_labels_of_headlines_name_what_exists(knowledge: Knowledge) -> None:
    """Facts, stages, cues and frameworks: a misspelt one would never be shown."""
    cues = {cue.id.removeprefix("cue-").replace("-", "_") for cue in knowledge.cues}
    facts = {fact.id for fact in knowledge.facts}
    known = {
        "cue_moment": cues,
        "cue_symptom": cues,
        "fact_moment": facts,
        "fact_headline": facts,
        "stage_moment": set(get_args(Stage)),
        "framework_name": {item.id for item in knowledge.frameworks},
    }
    named = [name.split(".") for name in knowledge.labels]
    wrong = [name for group, name in named if group in known and name not in known[group]]
    assert wrong == []


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
