"""Events that a person denies: no first error, no death, no fact."""

from __future__ import annotations

import pytest

from kb.logs import LogReader

XID = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
HANG = "Training hangs on 4 nodes, all ranks wait in an all_reduce with NCCL."


@pytest.mark.parametrize(
    ("line", "asserted"),
    [
        ("We see that the GPU has fallen off the bus on node 3.", True),
        ("There is no `GPU has fallen off the bus` in dmesg on any node.", False),
        ("No `NVRM: Xid`, no `GPU has fallen off the bus` in dmesg.", False),
        ("Could it be that a GPU has fallen off the bus?", False),
        ("I suspect that a GPU has fallen off the bus.", False),
        ("Last year we had a GPU that has fallen off the bus.", False),
        ("It quits with `GPU has fallen off the bus`. A reboot changes nothing.", True),
        ("It does not print `GPU has fallen off the bus`, nor anything else.", False),
        ("内核没有报 GPU has fallen off the bus。", False),
        ("我们在 dmesg 里没有看到 GPU has fallen off the bus 这样的报错。", False),
    ],
)
def test_what_a_person_does_not_assert_is_no_event(
    reader: LogReader, line: str, asserted: bool
) -> None:
    """A line of the same words that is asserted is one."""
    reading = reader.read_text(f"{HANG}\n{line}\n")
    assert [event.line for event in reading.events if event.kind == "root"] == [2] * asserted
    assert (reading.incident.first_error is not None) == asserted


def test_what_a_program_prints_is_an_event_whatever_a_person_says(reader: LogReader) -> None:
    """The person's line goes, the kernel's stays."""
    reading = reader.read_text(f"{HANG}\nThere is no GPU has fallen off the bus.\n[  12.3] {XID}\n")
    assert {event.line for event in reading.events if event.kind == "root"} == {3}
