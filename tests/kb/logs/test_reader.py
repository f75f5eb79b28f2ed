"""The reader of pastes: what of a text is a program's output, and what is code."""

from __future__ import annotations

from kb.logs import LogReader

CODE = (
    "import torch.distributed as dist\n"
    "def save(model, path):\n"
    "    if dist.get_rank() == 0:\n"
    "        engine.save_checkpoint(path)\n"
    "    dist.barrier()\n"
)


def test_code_is_read_and_is_no_output(reader: LogReader) -> None:
    """No pattern of printed lines fires in code; what the code shows is a fact."""
    reading = reader.read_text(f"{CODE}\n[rank0]: training hangs after the save\n")
    assert [event.event for event in reading.events if event.line <= CODE.count("\n")] == []
    facts = {fact.name: (fact.line, fact.quote) for fact in reading.incident.facts}
    assert facts["code_rank_conditional_collective"] == (4, "engine.save_checkpoint(path)")
    assert not facts.keys() & {"at_save", "in_barrier"}
