"""Kinds of text lines, read with the lines around them."""

from __future__ import annotations

import re
import time

import pytest

from kb.text.line_kind import WORDS_CHARS, read_lines, words_of
from kb.types.incident import TextLine
from kb.types.vocabulary import LineKind

BLOCKS = {
    LineKind.PROSE: """
        Training on two nodes hangs right after the first epoch.
        We already tried another switch and it made no difference, any ideas?
        两台机器一起跑的时候，第一个 epoch 结束就卡住不动了。
        已经换过网线，还是一样，请问怎么排查？
    """,
    LineKind.OUTPUT: """
        node7:4711:4802 [3] NCCL INFO Channel 00/02 :    0   1   2   3
        [rank3]:[E1109 10:21:33.004 ProcessGroupNCCL.cpp:616] Watchdog caught collective timeout
        2025-03-01 12:00:01,250 INFO trainer.py:88 epoch 3 step 1200 loss 1.92
        Epoch 2:  40%|####      | 120/300 [02:11<03:14,  1.08s/it]
    """,
    LineKind.STACK: """
        Traceback (most recent call last):
          File "/opt/job/train.py", line 88, in <module>
            main(parse())
          File "/opt/job/train.py", line 61, in main
            loss.backward()
        RuntimeError: CUDA error: device-side assert triggered
    """,
    LineKind.SCRIPT: """
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --gpus-per-node=8
        export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)
        srun torchrun --nnodes 2 --nproc_per_node 8 \\
            --rdzv_endpoint $MASTER_ADDR:29500 train.py
    """,
    LineKind.ENVIRONMENT: """
        NCCL_DEBUG=INFO
        NCCL_SOCKET_IFNAME=eth0
        CUDA_VISIBLE_DEVICES=0,1,2,3
        HOSTNAME=gpu-17
        OMP_NUM_THREADS=8
    """,
    LineKind.CONFIG: """
        {
          "train_micro_batch_size_per_gpu": 4,
          "zero_optimization": {
            "stage": 3,
            "overlap_comm": true
          }
        }
    """,
    LineKind.CODE: """
        import torch
        import torch.distributed as dist

        def main() -> None:
            dist.init_process_group("nccl")
            model = DDP(model, device_ids=[local_rank])
            for batch in loader:
                loss = model(batch)
    """,
    LineKind.TABLE: """
        +-----------------------------------------------------------------------------+
        | NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2     |
        |-------------------------------+----------------------+----------------------+
        |   0  NVIDIA A100-SXM...  On   | 00000000:07:00.0 Off |                    0 |
        | N/A   31C    P0    61W / 400W |   1234MiB / 81920MiB |      0%      Default |
        +-------------------------------+----------------------+----------------------+
    """,
    LineKind.MARKUP: """
        ### Describe the bug
        - [x] I have searched the existing issues
        <details>
        <summary>logs</summary>
        </details>
    """,
}


def block(kind: LineKind) -> str:
    """The lines of that kind, at the margin."""
    lines = BLOCKS[kind].strip("\n").split("\n")
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[margin:] for line in lines).rstrip()


def kinds(text: str) -> list[LineKind]:
    """The kinds of the lines that are not blank."""
    return [line.kind for line in read_lines(text)]


def size(text: str) -> int:
    """Lines that are not blank."""
    return sum(1 for line in text.split("\n") if line.strip())


@pytest.mark.parametrize("kind", LineKind)
def test_a_text_of_one_kind(kind: LineKind) -> None:
    """All lines of a block of one kind are of that kind, CRLF or not."""
    text = block(kind)
    assert kinds(text) == [kind] * size(text)
    assert kinds(text.replace("\n", "\r\n")) == [kind] * size(text)


@pytest.mark.parametrize("kind", [k for k in LineKind if k is not LineKind.MARKUP])
def test_blocks_stand_in_any_order(kind: LineKind) -> None:
    """Behind a person's words and before program output a block keeps its kind."""
    before, after = block(LineKind.PROSE), block(LineKind.OUTPUT)
    text = f"{before}\n\n{block(kind)}\n\n{after}"
    expected = [
        *[LineKind.PROSE] * size(before),
        *[kind] * size(block(kind)),
        *[LineKind.OUTPUT] * size(after),
    ]
    wrong = sum(one is not other for one, other in zip(kinds(text), expected, strict=True))
    assert wrong <= 1  # a line at the border


@pytest.mark.parametrize("mark", ["> ", ">", "> > "])
@pytest.mark.parametrize("kind", [LineKind.PROSE, LineKind.OUTPUT, LineKind.STACK, LineKind.SCRIPT])
def test_quoted_text_has_the_kind_of_what_is_quoted(kind: LineKind, mark: str) -> None:
    """Quote marks are taken off, noted, and change no kind."""
    text = block(kind)
    lines = read_lines("\n".join(mark + line for line in text.split("\n")))
    assert [line.kind for line in lines] == kinds(text)
    assert all(line.quoted for line in lines)
    assert [line.text.strip() for line in lines] == [line.strip() for line in text.split("\n")]


@pytest.mark.parametrize("prefix", ["[rank3]: ", "2025-03-01T10:00:00Z ", "[default3]:", "3: "])
def test_a_stack_behind_a_log_prefix(prefix: str) -> None:
    """A traceback is one whatever the launcher puts before each line."""
    text = "\n".join(prefix + line for line in block(LineKind.STACK).split("\n"))
    assert kinds(text) == [LineKind.STACK] * 6


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("[rank0]: 不是这个，是共享内存的问题", LineKind.OUTPUT),
        ("(Worker pid=7) it is the network, I think", LineKind.OUTPUT),
        ("我觉得不是这个，是共享内存的问题", LineKind.PROSE),
        ("it is the network, I think", LineKind.PROSE),
    ],
)
def test_what_a_launcher_stamped_is_nobodys_words(line: str, kind: LineKind) -> None:
    """A sentence behind a rank or a process is a program's, whatever it says."""
    assert kinds(line) == [kind]


@pytest.mark.parametrize("blank", ["", " ", "  ", "\t", "\u3000", "\u00a0"])
@pytest.mark.parametrize("front", ["[rank0]: ", "[rank0]: [rank0]: ", "> [pod/a-0/b] 3: ", "3: "])
def test_a_stamped_line_may_be_blank(front: str, blank: str) -> None:
    """What a launcher stamps in front of an empty line is output by itself."""
    assert [line.number for line in read_lines(f"{front}{blank}\nIt hangs.")] == [1, 2]


def test_lines_have_their_numbers() -> None:
    """Blank lines count and are not given; of a line drawn over the last state is read."""
    lines = read_lines("It hangs on rank 3.\n\n 10%|#   |\r100%|####| 3/3 [00:01<00:00]\r\n")
    assert [(line.number, line.text) for line in lines] == [
        (1, "It hangs on rank 3."),
        (3, "100%|####| 3/3 [00:01<00:00]"),
    ]
    assert read_lines("") == ()
    assert read_lines(" \n\t\n") == ()


@pytest.mark.parametrize(
    "line",
    [
        "a" * 200_000,
        "> " * 60_000,
        "[" * 100_000,
        "- " * 90_000,
        "\ud800 x",
        "\x00" * 1000,
        "（" * 9,
    ],
    ids=["word", "quotes", "brackets", "dashes", "surrogate", "nul", "wide"],
)
def test_hostile_lines_take_linear_time(line: str) -> None:
    """A line of any shape is read at once."""
    read_lines("it hangs")
    started = time.process_time()
    read_lines("\n".join([line] * 3))
    assert time.process_time() - started < 2.0


def prose(text: str, number: int = 1) -> TextLine:
    """A line of a person's words."""
    return TextLine(number=number, text=text, kind=LineKind.PROSE)


def test_words_are_a_persons_lines() -> None:
    """Space is squeezed; what a program's stock explanation adds is cut off."""
    output = TextLine(number=2, text="[rank0]: x", kind=LineKind.OUTPUT)
    lines = [prose("it   hangs "), output, prose("Err: y. Cause: net", 3), prose("Cause: net", 4)]
    words = words_of(lines, [re.compile("Cause:")])
    assert [(line.number, line.text) for line in words] == [(1, "it hangs"), (3, "Err: y.")]


def test_words_are_bounded() -> None:
    """Whole lines up to the limit, a line feed counted with each."""
    words = words_of([prose("x" * 99, number) for number in range(200)])
    assert len(words) == WORDS_CHARS // 100
