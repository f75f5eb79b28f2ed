"""Tests of kb/evidence/kernel.py and its data: Xid, ECC, links, OOM kills."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kb.errors import DataError
from kb.evidence.kernel import KernelLine, looks_like_kernel, read_kernel, xid_table
from kb.evidence.reading import expression
from kb.knowledge.load import read_yaml
from kb.settings import shipped_data
from kb.types.knowledge import FactMeaning

SMI = """
==============NVSMI LOG==============

Driver Version                            : 550.54.15
CUDA Version                              : 12.4

GPU 00000000:3B:00.0
    GPU Recovery Action                   : Reset
    ECC Errors
        Volatile
            SRAM Uncorrectable Parity     : 0
            DRAM Uncorrectable            : 2
    Remapped Rows
        Pending                           : Yes
    Clocks Event Reasons
        HW Thermal Slowdown               : Active
    Fabric
        State                             : In Progress
GPU 00000000:5E:00.0
    ECC Errors
        Volatile
            DRAM Uncorrectable            : 0
    Remapped Rows
        Pending                           : No
    Fabric
        State                             : Completed
"""


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        (
            "[1234.567890] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
            "xid_hardware_fatal",
        ),
        ("[12.345678] NVRM: Xid (PCI:0000:3b:00): 8, pid=7, channel idle", "xid_hardware"),
        (
            "Nov  1 kernel: NVRM: Xid (PCI:0000:9b:00): 74, pid='<unknown>', NVLink: fatal",
            "xid_link",
        ),
        (
            "[12.345678] NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python, MMU Fault",
            "xid_program",
        ),
        ("[12.345678] NVRM: Xid (PCI:0000:3b:00): 45, pid=7, Ch 0000001a", "xid_consequence"),
        ("[12.345678] NVRM: Xid (PCI:0000:3b:00): 999, something new", "xid_unlisted"),
        (
            "[84512.391845] Out of memory: Killed process 48213 (python) total-vm:118236744kB",
            "kernel_oom_kill",
        ),
        ("[1.234567] Memory cgroup out of memory: Killed process 7 (python3)", "kernel_oom_kill"),
        ("[99.123456] python[4242]: segfault at 0 ip 00007f sp 00007f error 4", "kernel_segfault"),
        ("[9.123456] INFO: task python:77 blocked for more than 120 seconds.", "kernel_hung_task"),
        ("[9.123456] nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 20034, Fatal", "kernel_nvswitch"),
        ("[9.123456] mlx5_core 0000:9a:00.0: Port: 1 Link DOWN", "kernel_ib_link_down"),
        ("[9.123456] ens5: NIC Link is Down", "kernel_eth_link_down"),
        ("[9.123456] pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error", "kernel_pcie_error"),
        ("[9.123456] blk_update_request: I/O error, dev nvme0n1, sector 5", "kernel_disk_error"),
        ("[9.123456] NVRM: GPU 0000:3b:00.0: RmInitAdapter failed!", "kernel_gpu_init"),
    ],
)
def test_a_line_gives_its_fact(line: str, fact: str) -> None:
    """Each kind of line is recognised, quoted literally and told to be a kernel log."""
    reading = read_kernel(line)
    assert fact in {found.name for found in reading.facts}
    assert all(found.quote == line.strip() and found.line == 1 for found in reading.facts)
    assert looks_like_kernel(line)


@pytest.mark.parametrize(
    "line",
    [
        "[1.234567] mlx5_core 0000:9a:00.0: Port: 1 Link UP",
        "[1.234567] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5",
        "[1.234567] ens5: NIC Link is Up 100 Gbps Full Duplex",
        "[1.234567] EXT4-fs (sda1): mounted filesystem with ordered data mode",
        "[1.234567] oom_reaper: unable to reap",
    ],
)
def test_ordinary_lines_give_nothing(line: str) -> None:
    """Messages of a healthy machine are no facts."""
    assert read_kernel(line).facts == ()


def test_the_state_of_each_gpu() -> None:
    """Of two GPUs in nvidia-smi -q only the ill one is named, with every complaint."""
    reading = read_kernel(SMI)
    assert {fact.name for fact in reading.facts} == {
        "smi_recovery_action",
        "smi_ecc_uncorrectable",
        "smi_row_remap_pending",
        "smi_throttle_hardware",
        "smi_fabric_not_ready",
    }
    assert {fact.detail for fact in reading.facts} == {"GPU 00000000:3B:00.0"}
    assert reading.versions == {"driver": "550.54.15", "cuda": "12.4"}
    assert looks_like_kernel(SMI)


def test_a_flood_is_cut() -> None:
    """A thousand Xid lines leave three quotes."""
    line = "[1.234567] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    assert [fact.line for fact in read_kernel(line * 1000).facts] == [1, 2, 3]


def test_a_training_log_is_no_kernel_log() -> None:
    """A log that quotes one Xid among its own lines stays a log."""
    log = "step 1 loss 2.0\n" * 20 + "NVRM: Xid (PCI:0000:3b:00): 79\n"
    assert not looks_like_kernel(log)


def test_every_fact_has_a_meaning() -> None:
    """What the data files name, the evidence model weighs (data/dump_facts.yaml)."""
    data = shipped_data()
    weighed = {row.id for row in read_yaml(data / "dump_facts.yaml", tuple[FactMeaning, ...])}
    named = {
        row.fact
        for row in read_yaml(data / "kernel_lines.yaml", tuple[KernelLine, ...], decode=expression)
    }
    kinds = {f"xid_{row.kind}" for row in xid_table().values()} - {"xid_consequence"}
    assert named | kinds <= weighed


def test_meanings_are_in_both_languages() -> None:
    """Every Xid has Chinese and English words."""
    for row in xid_table().values():
        assert re.search(r"[一-鿿]", row.means.zh)
        assert row.means.en.isascii()


def test_an_expression_that_does_not_compile_is_refused(tmp_path: Path) -> None:
    """The file and the field are named as it is read, before a line is looked at."""
    path = tmp_path / "kernel_lines.yaml"
    path.write_text("- {fact: kernel_oom_kill, regex: '('}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"kernel_lines\.yaml.*regex"):
        read_yaml(path, tuple[KernelLine, ...], decode=expression)


LINK = "[{t}] ixgbe 0000:3b:00.0 {nic}: NIC Link is {state}"


@pytest.mark.parametrize(
    ("lines", "facts"),
    [
        pytest.param(
            [("    9.331022", "eth0", "Down"), ("   12.882113", "eth0", "Up 10 Gbps")],
            [],
            id="boot",
        ),
        pytest.param([("    9.331022", "eth0", "Down")], ["kernel_eth_link_down"], id="no-cable"),
        pytest.param(
            [("    9.331022", "eth0", "Down"), ("   12.882113", "eth1", "Up 10 Gbps")],
            ["kernel_eth_link_down"],
            id="another-link",
        ),
        pytest.param(
            [("36009.331022", "eth0", "Down"), ("36012.882113", "eth0", "Up 10 Gbps")],
            ["kernel_eth_link_down"],
            id="flap",
        ),
        pytest.param(
            [
                ("    9.331022", "eth0", "Down"),
                ("   12.882113", "eth0", "Up 10 Gbps"),
                ("36009.331022", "eth0", "Down"),
            ],
            ["kernel_eth_link_down"],
            id="boot-and-failure",
        ),
    ],
)
def test_a_link_that_comes_up_at_boot_has_not_failed(
    lines: list[tuple[str, str, str]], facts: list[str]
) -> None:
    """Down while the host boots and then up is no fact; any other time it is one."""
    text = "\n".join(LINK.format(t=t, nic=nic, state=state) for t, nic, state in lines)
    assert [fact.name for fact in read_kernel(text).facts] == facts


def test_an_adapter_that_was_down_at_boot_is_no_fact() -> None:
    """The same for RDMA adapters, of which two facts may tell."""
    down = "[   10.5] mlx5_core 0000:5e:00.0 enp94s0f0np0: Link down".replace("10.5", "10.500000")
    up = "[   13.500000] mlx5_core 0000:5e:00.0 enp94s0f0np0: Link up"
    assert {fact.name for fact in read_kernel(down).facts} == {
        "kernel_ib_link_down",
        "kernel_eth_link_down",
    }
    assert read_kernel(f"{down}\n{up}\n").facts == ()
