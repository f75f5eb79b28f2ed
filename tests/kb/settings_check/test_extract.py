"""Which settings a text holds, in every form people paste them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.settings_check import find_settings

OPTIONS = ("ddp_timeout", "nccl_timeout", "timeout", "comm.train_timeout_seconds")

FORMS = {
    "export": ("export NCCL_TIMEOUT=3600", "NCCL_TIMEOUT", "3600"),
    "before a command": ("NCCL_P2P_DISABLE=1 python train.py", "NCCL_P2P_DISABLE", "1"),
    "quoted": ("export NCCL_DEBUG='INFO'", "NCCL_DEBUG", "INFO"),
    "end of a sentence": ("you could try NCCL_IB_DISABLE=1.", "NCCL_IB_DISABLE", "1"),
    "Chinese sentence": ("设置 NCCL_IB_DISABLE=1，再试一次", "NCCL_IB_DISABLE", "1"),
    "exact interface": ("NCCL_SOCKET_IFNAME==bond0", "NCCL_SOCKET_IFNAME", "=bond0"),
    "shell default": ('export NCCL_TIMEOUT="${NCCL_TIMEOUT:-1800}"', "NCCL_TIMEOUT", "1800"),
    "Dockerfile": ("ENV NCCL_IB_DISABLE 1", "NCCL_IB_DISABLE", "1"),
    "Dockerfile with =": ("ENV NCCL_IB_DISABLE=1", "NCCL_IB_DISABLE", "1"),
    "docker -e": ('docker run -e "NCCL_DEBUG=INFO" image', "NCCL_DEBUG", "INFO"),
    "mpirun -x": ("mpirun -x NCCL_ALGO=Ring -np 8 a.out", "NCCL_ALGO", "Ring"),
    "compose list": ('  - "GLOO_SOCKET_IFNAME=^lo,docker0"', "GLOO_SOCKET_IFNAME", "^lo,docker0"),
    "YAML": ("  NCCL_TIMEOUT: '7200'", "NCCL_TIMEOUT", "7200"),
    "JSON": ('{"env": {"DEEPSPEED_TIMEOUT": "120"}}', "DEEPSPEED_TIMEOUT", "120"),
    "pod": ('- name: NCCL_TIMEOUT\n  value: "60"', "NCCL_TIMEOUT", "60"),
    "pod in JSON": ('{"name": "NCCL_TIMEOUT", "value": "60"}', "NCCL_TIMEOUT", "60"),
    "os.environ": ('os.environ["NCCL_DEBUG"] = "WARN"', "NCCL_DEBUG", "WARN"),
    "setdefault": ("os.environ.setdefault('NCCL_DEBUG', 'WARN')", "NCCL_DEBUG", "WARN"),
    "str()": ('os.environ["NCCL_TIMEOUT"] = str(7200)', "NCCL_TIMEOUT", "7200"),
    "csh": ("setenv NCCL_DEBUG INFO", "NCCL_DEBUG", "INFO"),
    "PowerShell": ('$env:NCCL_DEBUG = "INFO"', "NCCL_DEBUG", "INFO"),
    "Slurm header": ("#SBATCH --export=ALL,NCCL_DEBUG=INFO", "NCCL_DEBUG", "INFO"),
    "NCCL's log": (
        "n1:9:9 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0",
        "NCCL_SOCKET_IFNAME",
        "eth0",
    ),
    "flag": ("train.py --ddp_timeout 7200 --bf16", "ddp_timeout", "7200"),
    "flag with dashes": ("train.py --ddp-timeout=7200", "ddp_timeout", "7200"),
    "YAML option": ("ddp_timeout: 180000000", "ddp_timeout", "180000000"),
    "keyword": ("TrainingArguments(ddp_timeout=7_200)", "ddp_timeout", "7_200"),
    "dotted": ("actor_rollout_ref.nccl_timeout=600", "nccl_timeout", "600"),
    "dotted id": (
        "--comm.train_timeout_seconds 50",
        "comm.train_timeout_seconds",
        "50",
    ),
    "minutes": ("init_process_group(timeout=timedelta(minutes=5))", "timeout", "300"),
    "product": ("timeout=datetime.timedelta(seconds=60*60*3)", "timeout", "10800"),
    "sum of units": ("timeout=timedelta(hours=1, minutes=30)", "timeout", "5400"),
    "days": ("timeout=timedelta(7200)", "timeout", "622080000"),
    "said": ("I set NCCL_TIMEOUT to 7200 but nothing changes", "NCCL_TIMEOUT", "7200"),
    "said of a switch": ("`NCCL_ASYNC` was set to true.", "NCCL_ASYNC", "true"),
    "said in Chinese": ("我把HCCL_EXEC_TIMEOUT设置成0，但是不生效", "HCCL_EXEC_TIMEOUT", "0"),
    "behind a Chinese character": ("我设置了NCCL_IB_TIMEOUT=2", "NCCL_IB_TIMEOUT", "2"),
}


@pytest.mark.parametrize(("text", "name", "value"), FORMS.values(), ids=FORMS.keys())
def test_every_form_is_read(text: str, name: str, value: str) -> None:
    """A form people paste yields exactly this one setting with its plain value."""
    found = [(item.name, item.value) for item in find_settings(text, OPTIONS)]
    assert found == [(name, value)]


NOT_SET = {
    "said without a value": "raise NCCL_TIMEOUT to a larger value, or NCCL_DEBUG to whatever",
    "comment": "# export NCCL_TIMEOUT=3600",
    "trailing comment": "python train.py  # NCCL_TIMEOUT=3600 did nothing",
    "comparison": 'if os.environ["NCCL_DEBUG"] == "INFO":',
    "comparison of names": "if NCCL_DEBUG == 1:",
    "read": 'os.environ.get("NCCL_DEBUG")',
    "unset": "unset NCCL_P2P_DISABLE",
    "torch's hint": "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.",
    "NCCL's hint": "ncclInternalError. Run with NCCL_DEBUG=INFO for details",
    "tokenizers' hint": (
        "Explicitly set the environment variable TOKENIZERS_PARALLELISM=(true | false)"
    ),
    "c10d's report": (
        "I1028 ProcessGroupNCCL.cpp:843] [Rank 0] options: NCCL_ASYNC_ERROR_HANDLING: 1"
    ),
    "torch's printed options": (
        "ProcessGroupNCCL initialized with following options:\n"
        "NCCL_ASYNC_ERROR_HANDLING: 1\nNCCL_DESYNC_DEBUG: 0\nNCCL_BLOCKING_WAIT: 0"
    ),
    "watchdog": "WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000)",
    "unknown option": "--learning_rate 3 --batch-size=8",
    "numeric timeout of something else": "requests.get(url, timeout=30)",
    "computed": "timeout=timedelta(seconds=args.timeout)",
}


@pytest.mark.parametrize("text", NOT_SET.values(), ids=NOT_SET.keys())
def test_what_is_not_in_force_is_no_setting(text: str) -> None:
    """Comments, comparisons, reads and the hints of programs set nothing."""
    assert find_settings(text, OPTIONS) == ()


def test_lines_count_from_one_and_repeats_fold() -> None:
    """A setting keeps its first line; the same value on each rank's line is told once."""
    text = "NCCL_DEBUG=INFO\n\nNCCL_TIMEOUT=60\nNCCL_DEBUG=INFO\nNCCL_DEBUG=WARN\n"
    assert [(item.line, item.name, item.value) for item in find_settings(text)] == [
        (1, "NCCL_DEBUG", "INFO"),
        (3, "NCCL_TIMEOUT", "60"),
        (5, "NCCL_DEBUG", "WARN"),
    ]


def test_torch_options_end_with_the_next_other_line() -> None:
    """After the printed options a YAML block is read again."""
    text = "initialized with following options:\nNCCL_DEBUG: INFO\nstep 1\nNCCL_TIMEOUT: 60\n"
    assert [item.name for item in find_settings(text)] == ["NCCL_TIMEOUT"]


@given(
    name=st.from_regex(r"\ANCCL_[A-Z0-9]{1,8}_[A-Z]{1,8}\Z"),
    value=st.from_regex(r"\A[A-Za-z0-9^][A-Za-z0-9_:/]{0,15}\Z"),
)
def test_an_export_is_read_back(name: str, value: str) -> None:
    """What `export` writes is what is found, for any name and plain value."""
    found = find_settings(f'export {name}="{value}"')
    assert [(item.name, item.value) for item in found] == [(name, value)]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("NCCL_" * 40_000, id="a-name-without-end"),
        pytest.param("A_" * 100_000, id="underscores"),
        pytest.param("A_B set " * 25_000, id="names-set-to-nothing"),
        pytest.param("--a." * 50_000, id="a-flag-without-end"),
        pytest.param("A_B=${" * 33_000, id="braces"),
        pytest.param("name: A_B" + " " * 200_000, id="blanks"),
        pytest.param(f"timeout=timedelta({'1*' * 100_000})", id="factors"),
    ],
)
def test_no_line_costs_more_than_its_length(text: str) -> None:
    """Two hundred kilobytes without a setting take a moment; in squared time it were minutes."""
    started = time.process_time()
    assert [item.name for item in find_settings(text, OPTIONS) if item.name == "NCCL_DEBUG"] == []
    assert time.process_time() - started < 10


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200))
def test_any_text_is_accepted(text: str) -> None:
    """No text raises, and every line number lies within it."""
    lines = len(text.splitlines())
    assert all(1 <= item.line <= max(lines, text.count("\n") + 1) for item in find_settings(text))
