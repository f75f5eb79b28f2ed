"""Start-ups that recover are no trouble; the same lines without the recovery still are."""

from __future__ import annotations

import pytest

from kb.logs import LogReader

REFUSED = (
    "[W1103 08:0{n}:12.101233456 socket.cpp:764] [c10d] The client socket has failed to connect to"
    " [node-0]:29500 (errno: 111 - Connection refused)."
)
CONNECTED = (
    "[I1103 08:07:01.001233456 socket.cpp:946] [c10d] The client socket has connected to"
    " [{host}]:29500 on [node-1]:41122."
)
NO_ROUTE = REFUSED.replace("111 - Connection refused", "113 - No route to host")
INIT = (
    "node-1:41:50 [0] NCCL INFO comm 0x55d2 rank 8 nranks 16 cudaDev 0 busId 1b000 - Init COMPLETE"
)
STEPS = "step: 10 loss: 2.31 lr: 1.0e-04\nstep: 20 loss: 2.12 lr: 1.0e-04"
WAITING = (
    "INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize process"
    " group for rank: 0, key: store_based_barrier_key:{n} (world_size=4, worker_count=3,"
    " timeout=0:30:00)"
)
COMPLETED = (
    "INFO:torch.distributed.distributed_c10d:Rank 0: Completed store-based barrier for"
    " key:store_based_barrier_key:{n} with 4 nodes."
)
UNRESOLVED = (
    "[W1103 09:00:02.443234345 ProcessGroupGloo.cpp:760] Warning: Unable to resolve hostname to a"
    " (local) address. Using the loopback address as fallback."
)
MESH = "[Gloo] Rank 0 is connected to 1 peer ranks. Expected number of connected peer ranks is : 1"
NO_MESH = MESH.replace("connected to 1", "connected to 0")
NEURON = (
    "Nrt::BuildGlobalComm failed on NeuronCores 0-1(2):  nrt_status=1,"
    ' message="Non specific failure".'
)
DOWN = "[{t}] ixgbe 0000:3b:00.0 {nic}: NIC Link is Down"
UP = "[{t}] ixgbe 0000:3b:00.0 {nic}: NIC Link is Up 10 Gbps, Flow Control: RX/TX"
BOOT_DOWN = DOWN.format(t="    9.331022", nic="eth0")
BOOT_UP = UP.format(t="   12.882113", nic="eth0")
NCCL_REFUSED = (
    "n1:88:90 [0] NCCL INFO socketPollConnect: connect to 10.0.0.4<46417> returned Connection"
    " refused, retrying (13/34) after sleep for 1300 msec"
)
PENDING = "0/8 nodes are available: 8 Insufficient nvidia.com/gpu."
NO_STEP = "srun: Job 12 step creation temporarily disabled, retrying (Requested nodes are busy)"
TIMEOUT = "RuntimeError: Timed out waiting 1800000ms for send operation to complete"


def log(*lines: str) -> str:
    """The lines as one log."""
    return "\n".join(lines) + "\n"


def signs(reader: LogReader, text: str) -> list[str]:
    """The kinds of events of a log that tell of an error or a timeout."""
    events = reader.read_text(text).events
    return [event.event for event in events if event.kind in ("root", "timeout", "cascade")]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(log(REFUSED.format(n=1), REFUSED.format(n=2), INIT, STEPS), id="init"),
        pytest.param(log(REFUSED.format(n=1), CONNECTED.format(host="node-0")), id="connected"),
        pytest.param(log(NO_ROUTE.format(n=1), STEPS), id="no-route-then-steps"),
        pytest.param(log(WAITING.format(n=1), COMPLETED.format(n=1), STEPS), id="barrier"),
        pytest.param(log(WAITING.format(n=1), COMPLETED.format(n=1)), id="barrier-alone"),
        pytest.param(log(UNRESOLVED, MESH), id="gloo-mesh"),
        pytest.param(log(UNRESOLVED, STEPS), id="gloo-steps"),
        pytest.param(log(BOOT_DOWN, BOOT_UP), id="boot"),
        pytest.param(log(NCCL_REFUSED, INIT), id="nccl-connected"),
        pytest.param(log(PENDING, STEPS), id="scheduled"),
        pytest.param(log(NO_STEP, STEPS), id="step-created"),
        pytest.param(log(NEURON, "***** Running training *****", STEPS), id="neuron"),
    ],
)
def test_a_start_that_recovers_is_no_sign(reader: LogReader, text: str) -> None:
    """Connected after all, all there, link up, training: neither a sign nor a first error."""
    assert signs(reader, text) == []
    incident = reader.read_text(text).incident
    assert (incident.has_timeout, incident.first_error) == (False, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(log(REFUSED.format(n=1)), ["store_connect"], id="refused"),
        pytest.param(
            log(REFUSED.format(n=1), CONNECTED.format(host="node-7")),
            ["store_connect"],
            id="another-host-connected",
        ),
        pytest.param(
            log(REFUSED.format(n=1), STEPS, REFUSED.format(n=2), REFUSED.format(n=3)),
            ["store_connect"],
            id="refused-again",
        ),
        pytest.param(
            log(REFUSED.format(n=1), TIMEOUT, STEPS),
            ["store_connect", "gloo_timeout"],
            id="failed-and-started-again",
        ),
        pytest.param(
            log(COMPLETED.format(n=1), WAITING.format(n=2)), ["store_barrier_waiting"], id="second"
        ),
        pytest.param(
            log(WAITING.format(n=2), COMPLETED.format(n=1)),
            ["store_barrier_waiting"],
            id="another-barrier",
        ),
        pytest.param(log(UNRESOLVED, NO_MESH), ["gloo_hostname"], id="no-mesh"),
        pytest.param(log(STEPS, BOOT_DOWN), ["link_down"], id="down-and-stays"),
        pytest.param(
            log(BOOT_DOWN, UP.format(t="   12.882113", nic="eth1")),
            ["link_down"],
            id="another-link",
        ),
        pytest.param(
            log(DOWN.format(t="36009.331022", nic="eth0"), UP.format(t="36012.3", nic="eth0")),
            ["link_down"],
            id="flap-of-a-running-host",
        ),
        pytest.param(log(NEURON), ["neuron_comm_failed"], id="neuron"),
        pytest.param(log(INIT, NCCL_REFUSED), ["nccl_connect_failed"], id="nccl-refused"),
        pytest.param(log(PENDING), ["pods_unscheduled"], id="pending"),
        pytest.param(log(NO_STEP), ["step_not_started"], id="no-step"),
    ],
)
def test_without_the_recovery_it_is_one(reader: LogReader, text: str, expected: list[str]) -> None:
    """No recovery, one of something else, or a failure before it: the sign stays."""
    assert signs(reader, text) == expected


def test_a_sign_that_comes_again_is_told_where_it_came_again(reader: LogReader) -> None:
    """The first attempt connected, the second did not: the line is that of the second."""
    text = log(REFUSED.format(n=1), CONNECTED.format(host="node-0"), REFUSED.format(n=2))
    (event,) = (e for e in reader.read_text(text).events if e.event == "store_connect")
    assert (event.line, event.count) == (3, 1)


def test_a_communicator_that_cannot_be_built_is_a_failed_communication(reader: LogReader) -> None:
    """Neuron's line alone is enough for an answer."""
    assert reader.read_text(log(NEURON)).incident.has_timeout
