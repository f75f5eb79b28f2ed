"""Tests of kb/evidence/stacks.py on text of py-spy and faulthandler."""

from __future__ import annotations

import pytest

from kb.evidence.stacks import Stack, looks_like_stacks, parse_stacks, read_stacks

WAITING = """Process {pid}: /usr/bin/python3 train.py --local-rank={rank}
Python v3.10.12 (/usr/bin/python3.10)

Thread {pid} (idle): "MainThread"
    wait (torch/distributed/distributed_c10d.py:361)
    all_reduce (torch/distributed/distributed_c10d.py:2501)
    wrapper (torch/distributed/c10d_logger.py:83)
    average_gradients (train.py:45)
    <module> (train.py:99)
Thread {other} (idle): "Thread-1"
    wait (threading.py:324)
    _bootstrap (threading.py:973)
"""
PLACES = {
    "data": """    poll (multiprocessing/connection.py:257)
    get (queue.py:180)
    _try_get_data (torch/utils/data/dataloader.py:1132)
    _next_data (torch/utils/data/dataloader.py:1328)
    train (train.py:40)""",
    "save": """    _legacy_save (torch/serialization.py:700)
    save (torch/serialization.py:630)
    save_checkpoint (train.py:70)""",
    "tokenize": """    _batch_encode_plus (transformers/tokenization_utils_fast.py:500)
    map (datasets/arrow_dataset.py:3000)
    main (train.py:20)""",
    "evaluate": """    matmul (torch/functional.py:10)
    evaluation_loop (transformers/trainer.py:4000)
    main (train.py:20)""",
    "store": """    _create_c10d_store (torch/distributed/rendezvous.py:190)
    init_process_group (torch/distributed/distributed_c10d.py:1500)
    main (train.py:20)""",
    "device_sync": """    synchronize (torch/cuda/__init__.py:890)
    train (train.py:41)""",
}


def waiting(rank: int) -> str:
    """A rank in an all-reduce."""
    return WAITING.format(pid=4000 + rank, rank=rank, other=5000 + rank)


def elsewhere(rank: int, frames: str, *, state: str = "active") -> str:
    """A rank whose main thread has other frames."""
    return (
        f"Process {4000 + rank}: python train.py --local-rank={rank}\nPython v3.10\n\n"
        f'Thread {4000 + rank} ({state}): "MainThread"\n{frames}\n    <module> (train.py:99)\n'
    )


def read(*texts: str) -> tuple[Stack, ...]:
    """Processes of several files."""
    return tuple(stack for text in texts for stack in parse_stacks(text))


@pytest.mark.parametrize("place", ["data", "save", "tokenize", "evaluate", "store"])
def test_the_rank_that_does_something_else_is_named_with_its_place(place: str) -> None:
    """Three wait in an all-reduce, rank 2 stands elsewhere: that place is a fact."""
    reading = read_stacks(read(waiting(0), waiting(1), elsewhere(2, PLACES[place]), waiting(3)))
    assert [culprit.rank for culprit in reading.culprits] == [2]
    names = {fact.name for fact in reading.facts}
    assert {"stack_odd", f"stack_in_{place}"} <= names
    assert f"[{place}]" in reading.culprits[0].reason.en
    usual = "average_gradients → all_reduce() (train.py:45) [collective]"
    assert usual in reading.culprits[0].reason.zh


def test_every_quote_stands_in_the_text() -> None:
    """Quotes are literal: function and file as printed, without the line number."""
    text = waiting(0) + waiting(1) + elsewhere(2, PLACES["data"])
    for fact in read_stacks(read(text)).facts:
        if fact.quote:
            assert fact.quote.rstrip(")") in text


def test_all_waiting_names_nobody() -> None:
    """When every rank waits in the same call, the stacks know no culprit."""
    reading = read_stacks(read(*(waiting(rank) for rank in range(4))))
    assert reading.culprits == ()
    assert [f.name for f in reading.facts] == ["stack_group", "stack_all_wait"]
    assert reading.facts[0].detail.endswith("rank 0, 1, 2, 3")


def test_another_collective_is_odd_when_one_side_is_smaller() -> None:
    """Three ranks in all_reduce, one in all_gather: a mismatch seen from the stacks."""
    other = """    all_gather (torch/distributed/distributed_c10d.py:2800)
    save_sharded (train.py:60)"""
    reading = read_stacks(read(waiting(0), waiting(1), waiting(2), elsewhere(3, other)))
    assert [culprit.rank for culprit in reading.culprits] == [3]
    assert "stack_in_collective" in {fact.name for fact in reading.facts}


def test_one_function_two_lines_are_two_places() -> None:
    """A rank that waits in another line of the same function waits in another collective."""
    call = "    barrier (torch/distributed/distributed_c10d.py:3700)\n    train (train.py:{line})"
    stacks = [elsewhere(rank, call.format(line=43 if rank == 2 else 40)) for rank in range(4)]
    (culprit,) = read_stacks(read(*stacks)).culprits
    assert (culprit.rank, culprit.reason.en) == (
        2,
        (
            "3 ranks stand in train → barrier() (train.py:40) [collective], "
            "this one in train → barrier() (train.py:43) [collective]"
        ),
    )


def test_a_helper_called_from_two_lines_is_two_places() -> None:
    """Ranks that wait in one line of a helper are told apart by the line that called it."""
    call = (
        "    all_reduce (torch/distributed/distributed_c10d.py:3252)\n"
        "    average (utils.py:38)\n    train (train.py:{line})"
    )
    stacks = [elsewhere(rank, call.format(line=61 if rank == 1 else 60)) for rank in range(3)]
    reading = read_stacks(read(*stacks))
    (culprit,) = reading.culprits
    where = "average → all_reduce() (utils.py:38) [collective]"
    assert (culprit.rank, culprit.reason.en) == (
        1,
        f"2 ranks stand in {where} from train.py:60, this one in {where} from train.py:61",
    )
    assert f"rank 1 in {where} from train.py:61" in [fact.detail for fact in reading.facts]


def test_where_ranks_work_the_line_does_not_count() -> None:
    """Two ranks that compute are seen at two lines of one function: that is one place."""
    work = "    matmul (model.py:{line})\n    train (train.py:40)"
    reading = read_stacks(read(*(elsewhere(rank, work.format(line=rank)) for rank in (3, 4, 5))))
    assert [fact.name for fact in reading.facts] == ["stack_group"]


def test_backward_waits_for_the_others() -> None:
    """In a hang the main thread stands in backward, its hooks in collectives: one is elsewhere."""
    backward = """    _engine_run_backward (torch/autograd/graph.py:823)
    backward (torch/_tensor.py:581)
    train (train.py:40)"""
    barrier = "    barrier (torch/distributed/distributed_c10d.py:3700)\n    train (train.py:43)"
    stacks = [elsewhere(rank, barrier if rank == 2 else backward) for rank in range(8)]
    (culprit,) = read_stacks(read(*stacks)).culprits
    assert (culprit.rank, culprit.reason.en) == (
        2,
        (
            "7 ranks stand in train → _engine_run_backward() (train.py:40) [backward], "
            "this one in train → barrier() (train.py:43) [collective]"
        ),
    )


def test_two_against_two_names_nobody() -> None:
    """Without a smaller side nobody is odd."""
    other = "    barrier (torch/distributed/distributed_c10d.py:3700)\n    save (train.py:60)"
    reading = read_stacks(read(waiting(0), waiting(1), elsewhere(2, other), elsewhere(3, other)))
    assert reading.culprits == ()


def test_waiting_for_the_device_is_waiting() -> None:
    """A rank in torch.cuda.synchronize waits for its queue, in which the collective stands."""
    reading = read_stacks(read(waiting(0), waiting(1), elsewhere(2, PLACES["device_sync"])))
    assert "stack_all_wait" in {fact.name for fact in reading.facts}


def test_the_holder_of_the_interpreter_lock() -> None:
    """py-spy marks the thread that holds the GIL."""
    frames = "    convolve (native.py:3)\n    train (train.py:40)"
    reading = read_stacks(read(waiting(0), waiting(1), elsewhere(2, frames, state="active+gil")))
    assert "stack_holds_gil" in {fact.name for fact in reading.facts}


@pytest.mark.parametrize(
    ("text", "name", "rank"),
    [
        pytest.param(waiting(7), "x.txt", 7, id="argument"),
        pytest.param(waiting(0).replace(" --local-rank=0", ""), "pyspy_5.txt", 5, id="file-name"),
        pytest.param(
            "=== rank 3 ===\n" + waiting(0).replace("--local-rank=0", ""), "a", 3, id="head"
        ),
        pytest.param(waiting(0).replace(" --local-rank=0", ""), "all.txt", None, id="unknown"),
    ],
)
def test_where_the_rank_comes_from(text: str, name: str, rank: int | None) -> None:
    """From the command line, a heading, or the file's name, in this order; else it is unknown."""
    assert [stack.rank for stack in parse_stacks(text, name=name)] == [rank]


FAULTHANDLER = """Current thread 0x00007f7671f116c0 (most recent call first):
  File "/app/watch.py", line 63 in watch
  File "/usr/lib/python3.11/threading.py", line 982 in run

Thread 0x00007f7693057b80 (most recent call first):
  File "/app/data.py", line 140 in __getitem__
  File "/venv/lib/python3.11/site-packages/torch/utils/data/_utils/fetch.py", line 54 in fetch
  File "/app/train.py", line 178 in main
  File "/app/train.py", line 401 in <module>
"""


def test_faulthandler_reads_like_py_spy() -> None:
    """The thread that ends in a module is the main one; own functions are told from torch's."""
    (stack,) = parse_stacks(FAULTHANDLER, name="stack_rank_2.txt")
    assert (stack.rank, stack.place) == (2, "data")
    assert stack.own == ("__getitem__", "main", "<module>")


def test_headings_part_the_stacks_of_faulthandler() -> None:
    """Each heading that names a rank begins the stacks of another process."""
    text = "".join(
        f"=== rank {rank} ===\nCurrent thread 0x00007f0{rank} (most recent call first):\n"
        f'  File "/job/train.py", line {40 + rank} in {name}\n'
        for rank, name in ((0, "save"), (3, "forward"), (1, "forward"))
    )
    stacks = parse_stacks(text)
    assert [(stack.rank, stack.own) for stack in stacks] == [
        (0, ("save",)),
        (3, ("forward",)),
        (1, ("forward",)),
    ]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (waiting(0), True),
        (FAULTHANDLER, True),
        ("Traceback (most recent call last):\n", False),
        ("", False),
    ],
)
def test_stacks_are_told_from_logs(text: str, is_one: bool) -> None:
    """A traceback in a log is no stack dump."""
    assert looks_like_stacks(text) is is_one
