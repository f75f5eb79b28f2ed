"""Who has not joined: what torch prints of its store, and who is named."""

from __future__ import annotations

import pytest

from kb.logs import LogReader


def key(name: str) -> str:
    """A wait for a key that timed out."""
    return f"torch.distributed.DistStoreError: wait timeout after 300000ms, keys: {name}"


def clients(present: int, world: int) -> str:
    """The store's host waits for its clients."""
    return (
        f"torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. "
        f"{present}/{world} clients joined."
    )


def unique_id(rank: int, error: str) -> str:
    """A rank that NCCL's unique id did not reach."""
    return (
        f"torch.distributed.DistBackendError: [{rank}] is setting up NCCL communicator and "
        f"retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but "
        f"store->get('0') got error: {error}"
    )


def barrier(rank: int, present: int, world: int) -> str:
    """The barrier of a process group's creation."""
    return (
        f"INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize "
        f"process group for rank: {rank}, key: store_based_barrier_key:1 (world_size={world}, "
        f"worker_count={present}, timeout=0:30:00)"
    )


NO_CONNECTION = "[E socket.cpp:1028] [c10d] The client socket has timed out after 60000ms while "
NO_CONNECTION += "trying to connect to (10.0.0.1, 29500)."
GLOO, CUDA = "/default_pg/0//cpu//0/{}", "/default_pg/0//cuda//{}"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param({r: key(GLOO.format(3)) for r in (0, 1, 2)}, [3], id="gloo"),
        pytest.param({r: key(CUDA.format(5)) for r in (0, 1, 2, 3, 4, 6, 7)}, [5], id="older-gloo"),
        pytest.param({1: key("/default_pg/0//cpu//0/rank_2")}, [2], id="named-key"),
        pytest.param({1: key(GLOO.format(3)), 0: key(GLOO.format(2))}, [2, 3], id="two"),
        # a rank that waits there itself is not the one, whoever waits for it
        pytest.param(
            {0: key(GLOO.format(3)), 1: key(GLOO.format(0)), 2: key(GLOO.format(0))},
            [3],
            id="chain",
        ),
        # rank 0 counts clients and publishes nothing until all have come: rank 3 is late
        pytest.param(
            {1: key(GLOO.format(0)), 2: key(GLOO.format(0)), 0: clients(3, 4)}, [3], id="host"
        ),
        pytest.param(
            {
                1: key(GLOO.format(0)),
                2: key(GLOO.format(0)),
                0: clients(3, 4),
                3: NO_CONNECTION,
            },
            [3],
            id="the-late-one-finds-no-store",
        ),
        pytest.param({1: unique_id(1, "wait timeout after 600000ms, keys: /x//0")}, [0], id="id"),
        pytest.param({r: unique_id(r, "Broken pipe") for r in (1, 2)}, [0], id="reset"),
        pytest.param({r: barrier(r, 3, 4) for r in (0, 1, 3)}, [2], id="barrier"),
        # of two that count, one is not shown: who is missing is not said
        pytest.param({r: barrier(r, 3, 4) for r in (0, 1)}, [], id="incomplete"),
        pytest.param({0: clients(1, 8)}, [], id="most-are-missing"),
        pytest.param({1: key("/worker/status"), 2: key("/worker/status")}, [], id="other-key"),
        pytest.param({3: NO_CONNECTION}, [], id="no-connection"),
    ],
)
def test_who_is_late(reader: LogReader, lines: dict[int, str], expected: list[int]) -> None:
    """The rank that the store lacks, never one that waits in it."""
    text = "\n".join(f"[rank{rank}]: {line}" for rank, line in lines.items())
    incident = reader.read_text(text).incident
    assert [culprit.rank for culprit in incident.culprit_ranks] == expected
    assert any(f.name == "rank_not_joined" for f in incident.facts) is bool(expected)


def test_without_ranks_nobody_is_late(reader: LogReader) -> None:
    """Rank 0's own key may be missing because rank 0 still waits for another."""
    text = "\n".join([key(GLOO.format(0)), key(GLOO.format(0)), clients(3, 4), NO_CONNECTION])
    assert reader.read_text(text).incident.culprit_ranks == ()
