"""Where ranks stand: logs with stacks of several ranks, and who stands elsewhere."""

from __future__ import annotations

import itertools

import pytest

from kb.logs import LogReader
from kb.types.incident import Incident

LIBRARY = "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
TIMED_OUT = "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 4000ms for "
TIMED_OUT += "recv operation to complete"
CLOSED = "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.4]:42312"
STEP = ("train_step", 40, "all_reduce")
BARRIER = ("train", 43, "barrier")
Place = tuple[str, int, str]
FRONTS = [
    "[rank{}]: ",
    "[default{}]:",
    "[default{0}]:[rank{0}]: ",
    "[{}]:",
    "{}: ",
    "[1,{}]<stderr>:",
]


def traceback(place: Place, ending: str = TIMED_OUT) -> list[str]:
    """What a rank that failed in a collective prints."""
    function, line, call = place
    return [
        "Traceback (most recent call last):",
        '  File "/job/src/train.py", line 99, in <module>',
        f'  File "/job/src/train.py", line {line}, in {function}',
        f"    dist.{call}(x)",
        f'  File "{LIBRARY}", line 3252, in {call}',
        "    work.wait()",
        ending,
    ]


def interleaved(front: str, of_ranks: dict[int, list[str]]) -> str:
    """All ranks print at once, a line each in turn."""
    lines = [[front.format(rank) + line for line in lines] for rank, lines in of_ranks.items()]
    return "\n".join(line for row in itertools.zip_longest(*lines) for line in row if line)


def read(reader: LogReader, text: str) -> Incident:
    """The incident of a text."""
    return reader.read_text(text).incident


def culprits(incident: Incident) -> list[int]:
    """Ranks named."""
    return [culprit.rank for culprit in incident.culprit_ranks]


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize(("world", "odd"), [(3, 0), (4, 2), (8, 5), (16, 11)])
def test_the_rank_in_another_line(reader: LogReader, front: str, world: int, odd: int) -> None:
    """Whatever the prefixes, the world and the order: the one that stands elsewhere is named."""
    ranks = {rank: traceback(BARRIER if rank == odd else STEP) for rank in reversed(range(world))}
    incident = read(reader, interleaved(front, ranks))
    assert culprits(incident) == [odd]
    assert incident.culprit_ranks[0].reason.en == (
        f"{world - 1} ranks stand in train_step → all_reduce() (train.py:40) [collective], "
        "this one in train → barrier() (train.py:43) [collective]"
    )
    facts = {fact.name: fact.detail for fact in incident.facts}
    assert facts["stack_in_collective"] == f"rank {odd}"


FORMS = {
    "quoted": "> {}",
    "quoted-twice": "> > {}",
    "indented": "    {}",
    "numbered": "{n:5d}  {}",
    "clock": "10:{m:02d}:{s:02d} {}",
    "bracketed-clock": "[10:{m:02d}:{s:02d}] {}",
    "date": "2026-11-22T10:{m:02d}:{s:02d}.123456Z {}",
    "bracketed-date": "[2026-11-22 10:{m:02d}:{s:02d},123] {}",
    "journal": "Nov 22 10:{m:02d}:{s:02d} node1 train[123]: {}",
    "pdsh": "node-a: {}",
    "container": "trainer-1  | {}",
    "pod": "[pod/trainer-0/main] {}",
    "stream": "stderr: {}",
    "crlf": "{}\r",
    "empty-lines": "{}\n",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("front", ["[rank{}]: ", "[default{0}]:[rank{0}]: "])
def test_whoever_collected_the_lines(reader: LogReader, form: str, front: str) -> None:
    """What a collector, a quotation or an editor puts in front of all lines changes no rank."""
    ranks = {rank: traceback(BARRIER if rank == 5 else STEP) for rank in range(8)}
    lines = interleaved(front, ranks).split("\n")
    text = "\n".join(
        FORMS[form].format(line, n=n, m=n // 60, s=n % 60) for n, line in enumerate(lines)
    )
    assert culprits(read(reader, text)) == [5]


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        pytest.param([STEP] * 4, [], id="all-alike"),
        pytest.param([STEP, STEP, BARRIER, BARRIER], [], id="a-tie"),
        pytest.param([STEP, BARRIER], [], id="two-ranks"),
        pytest.param([STEP, STEP, BARRIER, ("save", 60, "all_gather")], [], id="no-majority"),
        pytest.param([STEP] * 5 + [BARRIER] * 2, [5, 6], id="two-of-seven"),
    ],
)
def test_where_nobody_is_odd(reader: LogReader, places: list[Place], expected: list[int]) -> None:
    """Only a minority against one place of most is named."""
    ranks = {rank: traceback(place) for rank, place in enumerate(places)}
    assert culprits(read(reader, interleaved("[rank{}]: ", ranks))) == expected


def test_an_error_of_its_own_is_no_place(reader: LogReader) -> None:
    """The rank that broke waits for nobody: it is named for its error, not for its line."""
    ranks = {rank: traceback(STEP, CLOSED) for rank in range(4)}
    ranks[1] = traceback(("load", 7, "barrier"), "KeyError: 'dog'")
    incident = read(reader, interleaved("[rank{}]: ", ranks))
    assert [(c.rank, c.reason.en) for c in incident.culprit_ranks] == [
        (1, "the first real error is on this rank; the rest follows from it")
    ]
    assert "stack_odd" not in {fact.name for fact in incident.facts}


def test_the_first_stack_of_a_rank_counts(reader: LogReader) -> None:
    """What a rank prints while it handles its timeout, or later, is no place of the hang."""
    ranks = {rank: traceback(STEP) for rank in range(4)}
    ranks[3] += traceback(("clean_up", 80, "barrier"))
    assert culprits(read(reader, interleaved("[rank{}]: ", ranks))) == []


PYSPY = """Process {pid}: python train.py --local_rank {rank}
Python v3.10.12 (/usr/bin/python3.10)

Thread {pid} (idle): "MainThread"
    {frames}
    train (train.py:{line})
    <module> (train.py:99)

"""
BACKWARD = "_engine_run_backward (torch/autograd/graph.py:823)\n    backward (torch/_tensor.py:581)"


@pytest.mark.parametrize(("world", "odd"), [(4, 2), (8, 7)])
def test_py_spy_pasted_between_words_and_log(reader: LogReader, world: int, odd: int) -> None:
    """Rank 2 stands in a barrier, the others in backward: told from the paste alone."""
    stacks = [
        PYSPY.format(pid=4000 + rank, rank=rank, frames=BACKWARD, line=40)
        if rank != odd
        else PYSPY.format(
            pid=4000 + rank,
            rank=rank,
            frames="barrier (torch/distributed/distributed_c10d.py:3700)",
            line=43,
        )
        for rank in range(world)
    ]
    text = "It hangs after an hour. py-spy says:\n\n" + "".join(stacks) + "step 12 loss 0.4\n"
    incident = read(reader, text)
    assert culprits(incident) == [odd]
    assert (
        incident.culprit_ranks[0].line == text[: text.index(f"Thread {4000 + odd}")].count("\n") + 1
    )
    assert "train → barrier() (train.py:43)" in incident.culprit_ranks[0].reason.en


def test_stacks_without_ranks_accuse_nobody(reader: LogReader) -> None:
    """Whose traceback it is, is not said."""
    text = "\n".join(line for place in (STEP, STEP, BARRIER) for line in traceback(place))
    assert culprits(read(reader, text)) == []


def test_the_launchers_own_traceback_is_no_ranks_place(reader: LogReader) -> None:
    """In the file of rank 0, or unmarked behind the ranks, it says that a child failed."""
    launcher = [
        "Traceback (most recent call last):",
        '  File "/x/site-packages/torch/distributed/run.py", line 1019, in run',
        "    elastic_launch(",
        '  File "/x/site-packages/torch/distributed/launcher/api.py", line 383, in launch_agent',
        "    raise ChildFailedError(",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    ]
    lines = [
        f"[default{rank}]:[rank{rank}]: {line}" for rank in (1, 2, 3) for line in traceback(STEP)
    ]
    incident = read(reader, "\n".join([*lines, *(f"[rank0]: {line}" for line in launcher)]))
    assert not any("launch_agent" in c.reason.en for c in incident.culprit_ranks)
