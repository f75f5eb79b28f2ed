"""Tags and cause claims out of words."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.tags import causes_anywhere, causes_in, project_of, stage_of, tags_of, versions_of
from ingest.wordlists import WordLists, with_filter
from kb.text.expression_filter import ExpressionFilter
from kb.types.incident import Incident

CAUSES = [
    ("一个 rank 先崩溃,其余的都在等", "rank-crash"),
    ("another rank crashed first", "rank-crash"),
    ("模型里有未使用的参数", "collective-mismatch"),
    ("unused parameters in the forward pass", "collective-mismatch"),
    ("各进程的批次数不同", "uneven-data"),
    ("ranks had a different number of batches", "uneven-data"),
    ("rank 0 进程负责 TensorBoard 日志", "rank0-long-work"),
    ("only the main process tokenizes, the main process preprocesses for long", "rank0-long-work"),
    ("保存模型耗时太长", "checkpoint-io"),
    ("saving the checkpoint is too slow and hits the timeout", "checkpoint-io"),
    ("num_workers 设置过高", "data-loading-stall"),
    ("the dataloader is stuck on slow storage", "data-loading-stall"),
    ("网卡选择错误", "network-config"),
    ("wrong network interface was chosen", "network-config"),
    ("节点间通信不稳定", "network-fault"),
    ("the link flaps", "network-fault"),
    ("IOMMU 没有关闭", "p2p-topology"),
    ("peer-to-peer access is broken", "p2p-topology"),
    ("容器的 /dev/shm 太小", "shm-limits"),
    ("not enough shared memory in the container", "shm-limits"),
    ("显卡掉卡,Xid 79", "gpu-hardware"),
    ("a bad GPU", "gpu-hardware"),
    ("transformers 版本不兼容", "software-version"),
    ("a bug in NCCL", "software-version"),
    ("默认超时时间太短", "timeout-too-short"),
    ("the default timeout is too short", "timeout-too-short"),
    ("计算节点负载不均衡", "compute-skew"),
    ("different sequence lengths make a straggler", "compute-skew"),
    ("两个通信域之间死锁", "comm-deadlock"),
    ("a deadlock between two streams", "comm-deadlock"),
    ("多个进程用了同一张 GPU", "device-mapping"),
    ("set_device was missing", "device-mapping"),
    ("主节点端口被占用", "rendezvous"),
    ("the rendezvous never completed", "rendezvous"),
    ("显存不足", "memory-pressure"),
    ("GPU memory is full", "memory-pressure"),
]


@pytest.mark.parametrize(("text", "cause"), CAUSES, ids=[f"{c}-{t[:12]}" for t, c in CAUSES])
def test_each_cause_is_named_in_both_languages(text: str, cause: str, words: WordLists) -> None:
    """A point of a causes section that says it gives the cause, first."""
    assert causes_in([text], words)[0] == cause


def test_causes_keep_the_order_of_the_points(words: WordLists) -> None:
    """Causes come in the order in which the section names them, each once."""
    points = ["显存不足", "版本冲突", "显存溢出", "无关的一句话"]
    assert causes_in(points, words) == ("memory-pressure", "software-version")


def test_weak_words_count_only_in_a_causes_section(words: WordLists) -> None:
    """A weak cue decides a point of a causes section and nothing in running text."""
    assert causes_in(["当前使用的版本"], words) == ("software-version",)
    assert causes_anywhere("我们当前使用的版本如下,带宽不足", words) == ()
    assert causes_anywhere("a deadlock, then a deadlock; /dev/shm; num_workers", words) == (
        "comm-deadlock",
        "data-loading-stall",
    )


def test_tags(words: WordLists) -> None:
    """Names are found in any spelling and given once, in the order of their first mention."""
    text = "FSDP2 on 8x A100-80GB with RTX 4090s, PyTorch and deepspeed ZeRO-3; all_reduce, then "
    tags = tags_of("vLLM hangs", text + "ALLREDUCE and _ALLGATHER_BASE over RoCE; nccl", words)
    assert tags.frameworks == ("vllm", "fsdp", "pytorch", "deepspeed")
    assert tags.hardware == ("a100", "roce")
    assert tags.ops == ("ALLREDUCE", "_ALLGATHER_BASE")
    assert tags.backend == "nccl"


def test_what_the_log_says_goes_first(words: WordLists) -> None:
    """Backend, op and versions of the incident stand before those of the words."""
    incident = Incident(backend="hccl", op="BROADCAST", versions={"torch": "2.1"}, stage="init")
    tags = tags_of("nccl", "allreduce with torch 1.0 while training", words, incident)
    assert (tags.backend, tags.ops[0], tags.versions, tags.stage) == (
        "hccl",
        "BROADCAST",
        {"torch": "2.1"},
        "init",
    )


@pytest.mark.parametrize(
    ("title", "text", "stage"),
    [
        ("保存模型时超时", "训练到最后", "save"),
        ("", "hangs when saving the model after training", "save"),
        ("", "验证集评估时卡住", "eval"),
        ("", "init_process_group never returns", "init"),
        ("", "the tokenizer takes an hour", "data"),
        ("", "训练三个 epoch 后卡住", "train"),
        ("推理服务卡住", "", "inference"),
        ("", "nothing is said", "unknown"),
    ],
)
def test_stage(title: str, text: str, stage: str, words: WordLists) -> None:
    """The stage is the moment the words name; training only where nothing else is named."""
    assert stage_of(title, text, words) == stage


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("torch==2.1.0+cu118", {"torch": "2.1.0+cu118"}),
        ("PyTorch version: 2.4.1", {"torch": "2.4.1"}),
        ("pytorch 1.13.1, CUDA 11.7", {"torch": "1.13.1", "cuda": "11.7"}),
        ("NCCL version 2.18.1+cuda12.1", {"nccl": "2.18.1"}),
        ("CANN 8.0.0,torch_npu 2.1.0", {"cann": "8.0.0", "torch_npu": "2.1.0"}),
        ("驱动版本:535.104", {"driver": "535.104"}),
        ("torch 2", {}),
        ("see torch/distributed at 10.0.0.1", {}),
    ],
)
def test_versions(text: str, versions: dict[str, str], words: WordLists) -> None:
    """A version number follows its package's name; other numbers are none."""
    assert versions_of(text, words) == versions


@pytest.mark.parametrize(
    ("title", "url", "project"),
    [
        ("x", "https://github.com/acme/toaster/issues/1", "acme/toaster"),
        ("Wenet分布式训练中的超时", "", "Wenet"),
        ("Llama-recipes项目中的问题", "", "Llama-recipes"),
        ("A hang in training", "", ""),
        ("训练中的超时", "", ""),
    ],
)
def test_project(title: str, url: str, project: str) -> None:
    """The repository of the address, else the name a Chinese title starts with."""
    assert project_of(title, url) == project


@pytest.fixture(scope="module")
def fast(words: WordLists, tmp_path_factory: pytest.TempPathFactory) -> WordLists:
    """The lists as a run over many files uses them."""
    return with_filter(words, tmp_path_factory.mktemp("cache"))


def test_one_pass_finds_what_each_expression_finds(
    words: WordLists, fast: WordLists, data_dir: Path
) -> None:
    """Tags and causes of write-ups, of titles and of every name are the same either way."""
    cases = sorted((data_dir / "cases").glob("*.md"))[::12]
    texts = [*(case.read_text("utf-8") for case in cases), *(text for text, _ in CAUSES)]
    texts += [name for name, _ in (*words.frameworks, *words.hardware, *words.ops)]
    texts += ["", "K\u212a \u017f \ud800", "x" * 5000]
    for text in texts:
        title, _, rest = text.partition("\n")
        units = text.split("\n")
        assert tags_of(title, rest, fast) == tags_of(title, rest, words), text
        assert causes_in(units, fast) == causes_in(units, words), text
        assert causes_anywhere(text, fast) == causes_anywhere(text, words), text


def test_one_pass_leaves_little_to_look_for(fast: WordLists) -> None:
    """Of the expressions those remain that may stand in the text, without which nothing is won."""
    left = fast.within("RCCL hangs on MI300X after the all-reduce; 主进程下载数据耗时")
    assert [name for name, _ in left.backends] == ["rccl"]
    assert [name for name, _ in left.hardware] == ["mi300"]
    assert "rank0-long-work" in {cue.cause for cue in left.cues}
    assert len(left.tag_expressions()) < len(fast.tag_expressions()) / 8


def test_what_was_compiled_is_kept(words: WordLists, fast: WordLists, tmp_path: Path) -> None:
    """The next process reads it; one damaged is compiled anew, and earlier ones go."""
    expressions = ["(?<!a)bc(?=d)", "nccl"]
    (tmp_path / "words-0000.hsdb").write_bytes(b"of an earlier release")
    first = ExpressionFilter(expressions, cache=tmp_path)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    assert first.possible("xbcd", "NCCL") == {0, 1}
    assert ExpressionFilter(expressions, cache=tmp_path).possible("a NCCL") == {1}
    path.write_bytes(content[:100])
    assert ExpressionFilter(expressions, cache=tmp_path).possible("bcd") == {0}
    assert path.read_bytes() == content
