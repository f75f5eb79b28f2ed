"""The advice check on the shipped knowledge: the truth table, and the block of a real write-up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from kb.knowledge.labels import Words
from kb.knowledge.load import read_labels, read_yaml
from kb.settings import shipped_data
from kb.settings_check import lint, report_settings
from kb.settings_check.lint import SEVERITY
from kb.types.answer import SettingWarning
from kb.types.incident import Incident, LogReading
from kb.types.knowledge import Advice
from kb.types.vocabulary import AdviceVerdict

LABELS = read_labels(shipped_data() / "labels")
WORDS = {"zh": Words(LABELS, "zh"), "en": Words(LABELS, "en")}
VERSIONS = ("2.1.2", "2.4.1", "2.8.0", "2.13.0")
URL = re.compile(r"https?://[\w.-]+\.[a-z]{2,}(?:/[^\s<>\"']*)?\Z")


@pytest.fixture(scope="module")
def advice(data_dir: Path) -> tuple[Advice, ...]:
    """The shipped advice."""
    return read_yaml(data_dir / "advice.yaml", tuple[Advice, ...])


def verdicts(warnings: tuple[SettingWarning, ...]) -> list[str]:
    """``NAME verdict`` of each warning."""
    return [f"{item.setting.partition('=')[0]} {item.verdict}" for item in warnings]


# Per text: what must be said for torch 2.1, 2.4, 2.8 and 2.13; nothing else may be.
ALIAS = "deprecated_alias"
TRUTH: dict[str, tuple[list[str], ...]] = {
    "NCCL_TIMEOUT=7200": (["no_effect"],) * 4,
    "NCCL_ASYNC_ERROR_HANDLING=1": ([], [ALIAS], [ALIAS], [ALIAS]),
    "TORCH_NCCL_ASYNC_ERROR_HANDLING=1": (["no_effect"], [], [], []),
    "NCCL_BLOCKING_WAIT=1": (["debug_only"], *([[ALIAS, "debug_only"]] * 3)),
    "TORCH_NCCL_BLOCKING_WAIT=1": (["no_effect"], *([["debug_only"]] * 3)),
    "NCCL_DESYNC_DEBUG=1": (["never_fixes"], *([[ALIAS, "never_fixes"]] * 3)),
    "TORCH_NCCL_DESYNC_DEBUG=1": (["no_effect"], *([["never_fixes"]] * 3)),
    "NCCL_ASYNC_ERROR_HANDLING=0": (["hides_cause"], *([[ALIAS, "hides_cause"]] * 3)),
    "TORCH_NCCL_DESYNC_DEBUG=1 TORCH_NCCL_ASYNC_ERROR_HANDLING=0": (
        ["no_effect", "no_effect"],
        *([["hides_cause", "never_fixes"]] * 3),
    ),
    "TORCH_NCCL_DESYNC_DEBUG=1 TORCH_NCCL_BLOCKING_WAIT=1": (
        ["no_effect", "no_effect"],
        *([["debug_only", "contradicts", "never_fixes", "contradicts"]] * 3),
    ),
    "NCCL_BLOCKING_WAIT=1 NCCL_ASYNC_ERROR_HANDLING=1": (
        ["contradicts", "debug_only", "contradicts"],
        *([[ALIAS, "contradicts", ALIAS, "debug_only", "contradicts"]] * 3),
    ),
    "TORCH_NCCL_TRACE_BUFFER_SIZE=1024": (
        ["no_effect"],
        ["never_fixes"],
        [ALIAS],
        [ALIAS, "lowers_default"],
    ),
    "TORCH_NCCL_TRACE_BUFFER_SIZE=20000": (["no_effect"], ["never_fixes"], [ALIAS], [ALIAS]),
    "TORCH_FR_BUFFER_SIZE=1024": (["no_effect"], ["no_effect"], [], ["lowers_default"]),
    "TORCH_FR_BUFFER_SIZE=20000": (["no_effect"], ["no_effect"], [], []),
    "TORCH_NCCL_DUMP_ON_TIMEOUT=1": (["no_effect"], [], [], []),
    "TORCH_NCCL_DUMP_ON_TIMEOUT=0": (["no_effect"], *([["hides_cause"]] * 3)),
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/tmp/a_": (["no_effect"], [], [ALIAS], [ALIAS]),
    "TORCH_FR_DUMP_TEMP_FILE=/tmp/a_": (["no_effect"], ["no_effect"], [], []),
    "timeout=timedelta(minutes=20)": (["lowers_default"], [], [], []),
    "timeout=timedelta(minutes=5)": (["lowers_default"],) * 4,
    "timeout=timedelta(hours=2)": ([],) * 4,
    "NCCL_P2P_DISABLE=1": (["debug_only"],) * 4,
    "NCCL_P2P_DISABLE=0": ([],) * 4,
    "NCCL_IB_DISABLE=1": (["debug_only"],) * 4,
    "NCCL_SHM_DISABLE=1": (["debug_only"],) * 4,
    "NCCL_P2P_DISABLE=1 NCCL_P2P_LEVEL=NVL": (
        ["debug_only", "contradicts", "contradicts", "debug_only"],
    )
    * 4,
    "NCCL_IB_TIMEOUT=22": (["never_fixes"],) * 4,
    "NCCL_IB_TIMEOUT=3600": (["wrong_unit"],) * 4,
    "NCCL_IB_TIMEOUT=14": (["lowers_default"],) * 4,
    "NCCL_IB_TIMEOUT=18": (["lowers_default"],) * 4,
    "NCCL_IB_TIMEOUT=20": ([],) * 4,
    "GLOO_SOCKET_IFNAME=^lo,docker0": (["wrong_value"],) * 4,
    "GLOO_SOCKET_IFNAME=eth0": ([],) * 4,
    "NCCL_SOCKET_IFNAME=^lo,docker0": ([],) * 4,
    "NCCL_SOCKET_IFNAMES=eth0": (["misspelt"],) * 4,
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=7200": (["no_effect"], *([["never_fixes"]] * 3)),
    "HCCL_CONNECT_TIMEOUT=7200": ([],) * 4,
    "HCCL_CONNECT_TIMEOUT=36000": (["wrong_value"],) * 4,
    "NCCL_P2P_LEVEL=pix": (["wrong_value"],) * 4,
    "NCCL_P2P_LEVEL=C2C": ([],) * 4,
    "--watchdog-timeout 0": (["wrong_value"],) * 4,
    "HCCL_EXEC_TIMEOUT=600": (["lowers_default"],) * 4,
    "HCCL_EXEC_TIMEOUT=0": (["hides_cause"],) * 4,
    "RCCL_MSCCL_ENABLE=0": (["debug_only"],) * 4,
    "RCCL_MSCCL_ENABLE=1": (["no_effect"],) * 4,
    "VLLM_ENGINE_ITERATION_TIMEOUT_S=600": (["never_fixes", "no_effect"],) * 4,
    "DEEPSPEED_TIMEOUT=7200": (["wrong_unit"],) * 4,
    "DEEPSPEED_TIMEOUT=120": ([],) * 4,
    "--ddp_timeout 7200": ([],) * 4,
    "ddp_timeout: 180000000": (["hides_cause"],) * 4,
    "XTUNER_DATASET_TIMEOUT=120": ([],) * 4,
    "--comm.train_timeout_seconds 600": ([],) * 4,
    "VLLM_RPC_TIMEOUT=300": (["wrong_unit", "no_effect"],) * 4,
    "CUDA_LAUNCH_BLOCKING=1": (["debug_only"],) * 4,
    "SLURM_NO_KILL=set": (["hides_cause"],) * 4,
    "SLURM_NO_KILL=1": (["wrong_value"],) * 4,
    "SLURM_NO_KILL=off": ([],) * 4,
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("text", TRUTH, ids=str)
def test_truth_table(text: str, version: str, advice: tuple[Advice, ...]) -> None:
    """For each torch version exactly the warnings that are true are given."""
    warnings = lint(text, advice, torch=version, words=WORDS["en"])
    assert [item.verdict for item in warnings] == TRUTH[text][VERSIONS.index(version)]


@pytest.mark.parametrize("text", TRUTH, ids=str)
def test_without_a_version_it_says_for_which(text: str, advice: tuple[Advice, ...]) -> None:
    """With no version given, what holds for some torch of today only names it; nothing is lost."""
    warnings = lint(text, advice, words=WORDS["en"])
    said = {item.verdict for item in warnings}
    expected = {verdict for column in TRUTH[text][1:] for verdict in column}
    assert expected <= said
    always = set.intersection(*(set(column) for column in TRUTH[text][1:]))
    assert all(item.torch_versions for item in warnings if item.verdict not in always)


@pytest.mark.parametrize(("torch", "silent"), [("2.0.1", True), ("2.1.0", False), ("2.8.0", False)])
def test_without_error_handling_the_timeout_is_logged_since_21(
    torch: str, silent: bool, advice: tuple[Advice, ...]
) -> None:
    """The warning about mode 0 is of the given torch: only before 2.1 the log stays empty."""
    warnings = lint("NCCL_ASYNC_ERROR_HANDLING=0", advice, torch=torch, words=WORDS["en"])
    (warning,) = (item for item in warnings if item.verdict == "hides_cause")
    assert ("logs nothing" in warning.explanation) is silent
    assert ("still reports the operation" in warning.explanation) is not silent


WRONG_LINES = {
    "NCCL_P2P_DISABLE": ("debug_only", "unset NCCL_P2P_DISABLE"),
    "NCCL_BLOCKING_WAIT": ("deprecated_alias", "TORCH_NCCL_BLOCKING_WAIT=1"),
    "NCCL_ASYNC_ERROR_HANDLING": ("deprecated_alias", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1"),
    "NCCL_IB_DISABLE": ("debug_only", "unset NCCL_IB_DISABLE"),
    "NCCL_P2P_LEVEL": ("contradicts", "unset NCCL_P2P_DISABLE"),
    "NCCL_TIMEOUT": ("no_effect", "--ddp_timeout 3600"),
}
BUFFER = "TORCH_NCCL_TRACE_BUFFER_SIZE"


@pytest.mark.shared
@pytest.mark.parametrize(
    ("version", "buffer"),
    [
        ("2.4", {"never_fixes": "TORCH_NCCL_DUMP_ON_TIMEOUT=1"}),
        ("2.13", {"deprecated_alias": "TORCH_FR_BUFFER_SIZE", "lowers_default": "20000"}),
    ],
)
@pytest.mark.parametrize("language", ["zh", "en"])
def test_block_of_a_write_up(
    shared_dir: Path,
    advice: tuple[Advice, ...],
    version: str,
    buffer: dict[str, str],
    language: str,
) -> None:
    """Every line of the copied environment is named with the reason and the right replacement."""
    text = (shared_dir / "seeds" / "004_29ad0ce425c21e42.txt").read_text(encoding="utf-8")
    warnings = lint(
        text,
        advice,
        torch=version,
        timeout_ms=1_800_000,
        words=WORDS[language],
    )
    said = {
        (item.setting.partition("=")[0], item.verdict): item
        for item in warnings
        if item.explanation and item.source
    }
    for name, (verdict, replacement) in WRONG_LINES.items():
        assert replacement in said[name, verdict].replacement
    for verdict, replacement in buffer.items():
        assert replacement in said[BUFFER, verdict].replacement
    assert {name for name, _ in said} == {*WRONG_LINES, BUFFER}
    assert "1800000" in said["NCCL_TIMEOUT", "no_effect"].explanation
    lines = text.splitlines()
    assert all(item.setting in lines[item.line - 1] for item in warnings)


def test_a_timeout_the_log_disproves(advice: tuple[Advice, ...]) -> None:
    """A setting of the group's timeout that the log does not show was not in force."""
    text = "--ddp_timeout 7200"
    assert verdicts(lint(text, advice, timeout_ms=600_000, words=WORDS["en"])) == [
        "ddp_timeout no_effect"
    ]
    assert lint(text, advice, timeout_ms=7_200_000, words=WORDS["en"]) == ()
    both = f"{text}\ntimeout=timedelta(minutes=10)"
    assert lint(both, advice, timeout_ms=600_000, words=WORDS["en"]) == ()


def test_the_contradicting_line_is_named(advice: tuple[Advice, ...]) -> None:
    """A contradiction says with which setting, on which line."""
    text = "NCCL_P2P_LEVEL=SYS\n\nNCCL_P2P_DISABLE=1"
    first = lint(text, advice, words=WORDS["en"])[0]
    assert first.explanation.endswith("(NCCL_P2P_DISABLE=1 on line 3)")


def test_a_sound_set_up_earns_no_warning(advice: tuple[Advice, ...]) -> None:
    """What this program itself recommends passes its own check."""
    text = (
        "export TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_BUFFER_SIZE=20000\n"
        "export TORCH_FR_DUMP_TEMP_FILE=/tmp/fr/rank_ NCCL_DEBUG=INFO\n"
        "export NCCL_SOCKET_IFNAME==bond0 GLOO_SOCKET_IFNAME=bond0 OMP_NUM_THREADS=8\n"
        "torchrun --nproc-per-node 8 train.py --ddp_timeout 7200\n"
    )
    assert lint(text, advice, torch="2.13", words=WORDS["en"]) == ()


def test_languages_say_the_same(advice: tuple[Advice, ...]) -> None:
    """Both languages give the same warnings with other words."""
    text = "\n".join(TRUTH)
    chinese = lint(text, advice, torch="2.8", timeout_ms=1, words=WORDS["zh"])
    english = lint(text, advice, torch="2.8", timeout_ms=1, words=WORDS["en"])
    assert verdicts(chinese) == verdicts(english)
    assert all(re.search(r"[\u4e00-\u9fff]", item.explanation) for item in chinese)
    assert not any(re.search(r"[\u4e00-\u9fff]", item.explanation) for item in english)


def test_enough_settings_each_with_a_source(advice: tuple[Advice, ...]) -> None:
    """At least 80 settings; each says who reads it or that nobody does, and names a page."""
    assert len(advice) >= 80
    for item in advice:
        assert item.sources
        assert all(URL.match(url) for url in item.sources), item.id
        if not item.read_by:
            assert [rule.verdict for rule in item.rules] == ["no_effect"], item.id


def test_every_rule_can_apply(advice: tuple[Advice, ...]) -> None:
    """Value tests and versions are well formed, and a contradiction names its partners."""
    for item in advice:
        for value in ("1", "0", "999999999", "eth0", "^lo"):
            name = item.id if not item.id.islower() else f"--{item.id}"
            for torch in (None, "2.1", "2.13"):
                lint(f"{name}={value}", advice, torch=torch, words=WORDS["en"])
        contradicts = any(rule.verdict == "contradicts" for rule in item.rules)
        if contradicts:
            assert item.contradicts, item.id


def test_versions_agree_with_since_and_until(advice: tuple[Advice, ...]) -> None:
    """A torch variable younger than 2.2 is said to have no effect before its first version."""
    for item in advice:
        for rule in item.rules:
            if rule.verdict == "no_effect" and rule.versions and item.since.startswith("torch>="):
                first = item.since.removeprefix("torch>=")
                last = item.until.removeprefix("torch>=")
                assert rule.versions in ((f"torch<{first}",), (f"torch>={last}",)), item.id


def test_replacements_are_of_no_language(advice: tuple[Advice, ...]) -> None:
    """A replacement is settings, code or a command, so it reads the same in both languages."""
    prose = re.compile(r"\b(?:with|without|or|and|alone|both|once|it|the)\b|[\u4e00-\u9fff]")
    for item in advice:
        for rule in item.rules:
            assert not prose.search(rule.replacement), (item.id, rule.replacement)


def test_the_worst_settings_of_an_incident_stand_first(advice: tuple[Advice, ...]) -> None:
    """By severity whatever their lines, those as bad as each other by line."""
    assert set(SEVERITY) == set(get_args(AdviceVerdict))
    values = {
        "CUDA_LAUNCH_BLOCKING": "1",
        "NCCL_TIMEOUT": "1800",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0",
        "NCCL_IB_TIMEOUT": "50",
        "NCCL_P2P_DISABLE": "1",
    }
    report = report_settings(
        LogReading(incident=Incident(settings=values), events=(), excerpt=""),
        advice,
        (),
        torch="2.6",
        words=WORDS["en"],
    )
    assert verdicts(report.warnings) == [
        "NCCL_IB_TIMEOUT wrong_unit",
        "NCCL_TIMEOUT no_effect",
    ]
    assert verdicts(report.notes) == [
        "TORCH_NCCL_ASYNC_ERROR_HANDLING hides_cause",
        "CUDA_LAUNCH_BLOCKING debug_only",
        "NCCL_P2P_DISABLE debug_only",
    ]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        pytest.param(
            "TORCH_NCCL_ENABLE_MONITORING",
            {"torch>=2.2,<2.3": "0", "torch>=2.3": "1"},
            id="off-at-first",
        ),
        pytest.param(
            "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
            {"torch>=2.2,<2.3": "120", "torch>=2.3,<2.5": "600", "torch>=2.5": "480"},
            id="thrice-changed",
        ),
        pytest.param("NCCL_NVLS_ENABLE", {"nccl>=2.17,<2.18": "1", "nccl>=2.18": "2"}, id="nvls"),
        pytest.param(
            "VLLM_SKIP_P2P_CHECK", {"vllm<0.10.1": "0", "vllm>=0.10.1": "1"}, id="skipped-since"
        ),
    ],
)
def test_defaults_are_those_of_the_released_code(
    setting: str, expected: dict[str, str], advice: tuple[Advice, ...]
) -> None:
    """Defaults that changed between releases, as the code of each release has them."""
    (entry,) = (item for item in advice if item.id == setting)
    assert {item.versions[0]: item.value for item in entry.defaults} == expected


def test_no_default_is_of_a_version_without_the_setting(advice: tuple[Advice, ...]) -> None:
    """A default that begins with a version does not begin before the setting itself does."""
    for entry in advice:
        product, _, first = entry.since.partition(">=")
        for default in entry.defaults:
            for wording in default.versions:
                begins = (
                    re.match(rf"{re.escape(product)}>=([0-9]+(?:[.][0-9]+)*)", wording)
                    if first
                    else None
                )
                if begins is not None:
                    numbers = [tuple(map(int, v.split("."))) for v in (begins[1], first)]
                    assert numbers[0] >= numbers[1], f"{entry.id}: {wording}"
