"""The root causes as shipped: complete, bilingual, sourced and safe to follow."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from kb.knowledge.labels import Words
from kb.knowledge.load import read_labels, read_yaml
from kb.settings_check import lint
from kb.types.knowledge import Advice, AppliesTo, Bilingual, Cause, Fix

IDS = (
    "rank-crash",
    "collective-mismatch",
    "uneven-data",
    "rank0-long-work",
    "checkpoint-io",
    "data-loading-stall",
    "network-config",
    "network-fault",
    "p2p-topology",
    "shm-limits",
    "gpu-hardware",
    "software-version",
    "timeout-too-short",
    "compute-skew",
    "comm-deadlock",
    "device-mapping",
    "rendezvous",
    "memory-pressure",
    "unknown",
)
FRAMEWORKS = {
    "spark", "dask", "ucx", "lightgbm", "xgboost",
    "accelerate", "ascend", "cosyvoice", "ddp", "deepep", "deepspeed", "fsdp", "jax", "lightning",
    "llamafactory", "megatron", "ms-swift", "nemo", "openrlhf", "pytorch", "ray", "sglang",
    "torchtitan", "transformers", "trl", "verl", "vllm", "webdataset", "wenet", "xtuner",
}  # fmt: skip
REQUIRED_FRAMEWORKS = {
    "ddp", "fsdp", "deepspeed", "transformers", "accelerate", "lightning", "megatron", "nemo",
    "verl", "openrlhf", "trl", "ms-swift", "llamafactory", "vllm", "sglang", "ascend",
}  # fmt: skip
BACKENDS = {"nccl", "gloo", "hccl", "rccl"}
URL = re.compile(r"https?://[\w.-]+\.[a-z]{2,}(?:/[^\s<>\"']*)?\Z")
SPECIFIER = re.compile(r"([a-z][\w.-]*?)([<>=!~].*)\Z")
# Chinese needs fewer characters than English: one character carries about a third of a word. Code
# and program output count the same in both, so short texts spread widely.
MIN_RATIO, MAX_RATIO = 0.18, 1.1
SHORT = 25  # English texts up to this length are names and output; their ratio says nothing
LOCATING = re.compile(r"NCCL_(?:P2P|IB|SHM)_DISABLE=1")
# Pairs that look alike (FIELD): some check must have an outcome that separates the two.
LOOK_ALIKES = (
    ("rank0-long-work", "collective-mismatch"),
    ("checkpoint-io", "collective-mismatch"),
    ("timeout-too-short", "collective-mismatch"),
    ("timeout-too-short", "comm-deadlock"),
    ("p2p-topology", "network-config"),
    ("p2p-topology", "collective-mismatch"),
    ("p2p-topology", "shm-limits"),
    ("network-config", "rendezvous"),
    ("network-fault", "collective-mismatch"),
    ("rank-crash", "collective-mismatch"),
    ("uneven-data", "collective-mismatch"),
    ("uneven-data", "network-config"),
    ("compute-skew", "collective-mismatch"),
    ("data-loading-stall", "network-config"),
    ("gpu-hardware", "p2p-topology"),
    ("software-version", "gpu-hardware"),
    ("memory-pressure", "network-config"),
    ("device-mapping", "p2p-topology"),
)


@pytest.fixture(scope="module")
def causes(data_dir: Path) -> tuple[Cause, ...]:
    """The shipped causes."""
    return read_yaml(data_dir / "causes.yaml", tuple[Cause, ...])


@pytest.fixture(scope="module")
def advice(data_dir: Path) -> tuple[Advice, ...]:
    """The shipped advice."""
    return read_yaml(data_dir / "advice.yaml", tuple[Advice, ...])


def bilingual(cause: Cause) -> Iterator[Bilingual]:
    """Every text of a cause."""
    yield from (cause.title, cause.definition, cause.restart_reason)
    yield from (*cause.shows, *cause.confirms, *cause.refutes)
    yield from (item.why for item in cause.collect)
    for fix in cause.fixes:
        yield from (fix.title, *fix.steps)
        if fix.caution:
            yield fix.caution
    for check in cause.checks:
        yield check.tells
        yield from (outcome.observation for outcome in check.outcomes)


def commands(cause: Cause) -> Iterator[tuple[str, str]]:
    """(where, command) of every command of a cause."""
    for fix in cause.fixes:
        yield from ((fix.id, command) for command in fix.commands)
    yield from ((check.id, check.command) for check in cause.checks)
    yield from ((f"{cause.id} collect", item.command) for item in cause.collect)


def scopes(cause: Cause) -> Iterator[tuple[str, AppliesTo]]:
    """(where, scope) of every fix and check."""
    yield from ((fix.id, fix.applies_to) for fix in cause.fixes)
    yield from ((check.id, check.applies_to) for check in cause.checks)


def test_the_public_ids_are_all_there(causes: tuple[Cause, ...]) -> None:
    """The 19 ids of the public vocabulary, in its order, `unknown` last."""
    assert tuple(cause.id for cause in causes) == IDS


def test_each_cause_is_complete(causes: tuple[Cause, ...]) -> None:
    """A cause says how it shows, what confirms and refutes it, what to do, check and collect."""
    for cause in causes:
        parts = (cause.shows, cause.confirms, cause.refutes, cause.fixes, cause.checks)
        assert all(parts), cause.id
        assert cause.collect, cause.id
        assert cause.sources, cause.id
        assert all(check.outcomes for check in cause.checks), cause.id
        assert all(fix.steps and fix.commands for fix in cause.fixes), cause.id


def test_languages_are_of_like_length(
    causes: tuple[Cause, ...], advice: tuple[Advice, ...]
) -> None:
    """Neither language is empty, a stub or the other one repeated."""
    texts = [(cause.id, text) for cause in causes for text in bilingual(cause)]
    texts += [(item.id, item.effect) for item in advice]
    texts += [(item.id, rule.explanation) for item in advice for rule in item.rules]
    for where, text in texts:
        assert text.zh.strip(), where
        assert text.en.strip(), where
        assert not re.search(r"[\u4e00-\u9fff]", text.en), (where, text.en)
        if len(text.en) > SHORT:
            ratio = len(text.zh) / len(text.en)
            assert MIN_RATIO <= ratio <= MAX_RATIO, (where, round(ratio, 2), text)


def test_ids_are_unique_and_carry_their_cause(causes: tuple[Cause, ...]) -> None:
    """Fix and check ids are ``<cause>/<slug>`` and stand once."""
    seen: set[str] = set()
    for cause in causes:
        for identifier in (*(fix.id for fix in cause.fixes), *(item.id for item in cause.checks)):
            assert re.fullmatch(rf"{cause.id}/[a-z0-9]+(?:-[a-z0-9]+)*", identifier), identifier
            assert identifier not in seen
            seen.add(identifier)


def test_outcomes_name_known_causes(causes: tuple[Cause, ...]) -> None:
    """No outcome supports and refutes the same cause, and every cause it names exists."""
    for cause in causes:
        for check in cause.checks:
            for outcome in check.outcomes:
                assert {*outcome.supports, *outcome.refutes} <= set(IDS), check.id
                assert not set(outcome.supports) & set(outcome.refutes), check.id


@pytest.mark.parametrize("pair", LOOK_ALIKES, ids="-vs-".join)
def test_some_check_separates_look_alikes(pair: tuple[str, str], causes: tuple[Cause, ...]) -> None:
    """For two causes that look alike an outcome supports one and refutes the other."""
    one, other = pair
    separating = [
        check.id
        for cause in causes
        for check in cause.checks
        for outcome in check.outcomes
        if (one in outcome.supports and other in outcome.refutes)
        or (other in outcome.supports and one in outcome.refutes)
    ]
    assert separating


def test_sources_are_addresses(causes: tuple[Cause, ...]) -> None:
    """Every source is a well-formed URL, and every fix that claims a standing has one."""
    for cause in causes:
        urls = [*cause.sources]
        urls += [url for fix in cause.fixes for url in fix.sources]
        urls += [url for check in cause.checks for url in check.sources]
        assert all(URL.match(url) for url in urls), cause.id
        assert all(fix.sources for fix in cause.fixes), cause.id


def test_scopes_use_known_names(causes: tuple[Cause, ...]) -> None:
    """Frameworks, backends and version specifiers are well formed."""
    for cause in causes:
        for where, scope in scopes(cause):
            assert set(scope.frameworks) <= FRAMEWORKS, where
            assert set(scope.backends) <= BACKENDS, where
            versions = (*scope.versions, *(v for item in cause.collect for v in item.versions))
            for version in versions:
                match = SPECIFIER.match(version)
                assert match, (where, version)
                SpecifierSet(match[2])


def test_every_framework_of_the_field_has_fixes(causes: tuple[Cause, ...]) -> None:
    """Each framework people train or serve with is named by some fix."""
    named = {name for cause in causes for fix in cause.fixes for name in fix.applies_to.frameworks}
    assert named >= REQUIRED_FRAMEWORKS


def test_nothing_recommends_what_nothing_reads(causes: tuple[Cause, ...]) -> None:
    """No command sets NCCL_TIMEOUT; where a step names it, it says that nothing reads it."""
    for cause in causes:
        for where, command in commands(cause):
            assert "NCCL_TIMEOUT" not in command, where
        for fix in cause.fixes:
            for text in (fix.title, *fix.steps):
                if "NCCL_TIMEOUT" in text.en:
                    assert "read by no" in text.en, fix.id


ALLOWED = {"debug_only", "never_fixes"}  # what a locating step is
TOLERATED = {
    ("rank0-long-work/llama-factory-tokenised", "hides_cause"),  # the project's own value
    ("rank0-long-work/ms-swift-cache", "hides_cause"),
    ("compute-skew/rollout", "hides_cause"),
}


def _versions_of(fix_versions: tuple[str, ...]) -> list[str]:
    """Torch releases from 2.1 on that a scope allows."""
    specifiers = [
        SpecifierSet(version.removeprefix("torch"))
        for version in fix_versions
        if version.startswith("torch")
    ]
    return [
        release
        for release in (f"2.{minor}" for minor in range(4, 16))
        if all(specifier.contains(release) for specifier in specifiers)
    ]


def test_commands_pass_the_advice_check(
    causes: tuple[Cause, ...], advice: tuple[Advice, ...], data_dir: Path
) -> None:
    """What a fix or collect item sets is right for every torch version it is meant for."""
    words = Words(read_labels(data_dir / "labels"), "en")
    for cause in causes:
        items: list[tuple[str, str, tuple[str, ...]]] = [
            (fix.id, command, _spoken_version(command) or fix.applies_to.versions)
            for fix in cause.fixes
            for command in fix.commands
        ]
        items += [(f"{cause.id} collect", item.command, item.versions) for item in cause.collect]
        for where, command, versions in items:
            for release in _versions_of(versions):
                bad = {item.verdict for item in lint(command, advice, torch=release, words=words)}
                bad = {verdict for verdict in bad if (where, verdict) not in TOLERATED}
                assert bad <= ALLOWED, (where, release, command, bad)


def _spoken_version(command: str) -> tuple[str, ...]:
    """The version a command's own comment names, such as ``# torch>=2.8``."""
    match = re.search(r"#\s*(torch[<>=][\d.<>=,]*)", command)
    return (match[1],) if match else ()


def _switches_off(fix: Fix) -> bool:
    return any(LOCATING.search(command) for command in fix.commands)


def test_switching_transports_off_only_locates(causes: tuple[Cause, ...]) -> None:
    """A fix that disables P2P, IB or SHM carries a caution."""
    switching = [fix for cause in causes for fix in cause.fixes if _switches_off(fix)]
    assert [fix.id for fix in switching if fix.caution is None] == []
    assert {fix.id for fix in switching} == {
        "network-config/ib-off-check",
        "p2p-topology/disable-check",
    }


def test_dumps_are_asked_for_explicitly(causes: tuple[Cause, ...]) -> None:
    """Whoever sets the recorder's size also switches the dump on, under the right name."""
    for cause in causes:
        for where, command in commands(cause):
            if "BUFFER_SIZE=" in command:
                assert "TORCH_NCCL_DUMP_ON_TIMEOUT=1" in command, where
        for item in cause.collect:
            if "TORCH_FR_" in item.command:
                assert item.versions == ("torch>=2.8",), cause.id
            elif "TORCH_NCCL_TRACE_BUFFER_SIZE" in item.command:
                assert item.versions == ("torch>=2.2,<2.8",), cause.id


def test_restart_verdicts(causes: tuple[Cause, ...]) -> None:
    """A restart helps against faults of machines and networks, not against code or settings."""
    verdicts = {cause.id: cause.restart for cause in causes}
    assert {name for name, verdict in verdicts.items() if verdict == "helps"} == {
        "network-fault",
        "gpu-hardware",
    }
    for name in ("collective-mismatch", "uneven-data", "network-config", "device-mapping"):
        assert verdicts[name] == "will_not_help"


PYTHON = re.compile(
    r"(?:from [\w.]+ import|import \w|with |@\w|if .*:$|for .* in .*:$|[\w.]+\(.*\)\s*(?:#.*)?$"
    r"|[A-Za-z_][\w., \[\]]* = |deepspeed\.|print\()"
)
YAML = re.compile(r"(?:# .*\n)?[a-z_ -]+:(?: .*)?\n|# .*\n[a-z_]+:")
PLACEHOLDER = re.compile(r"<[\w .-]+>")


def _kind(command: str) -> str:
    if command.startswith("{"):
        return "json"
    if YAML.match(command):
        return "yaml"
    lines = [line for line in command.splitlines() if line and not line.startswith("#")]
    return "python" if lines and PYTHON.match(lines[0]) else "shell"


def test_commands_are_well_formed(causes: tuple[Cause, ...]) -> None:
    """Every command parses as what it is: shell, Python, JSON or YAML."""
    kinds: dict[str, int] = {}
    for cause in causes:
        for where, command in commands(cause):
            assert command.strip(), where
            kind = _kind(command)
            kinds[kind] = kinds.get(kind, 0) + 1
            text = PLACEHOLDER.sub("WORD", command)
            if kind == "python":
                ast.parse(text)
            elif kind == "json":
                json.loads(text)
            elif kind == "yaml":
                yaml.safe_load(text)
            else:
                checked = subprocess.run(
                    ["bash", "-n"], input=text, capture_output=True, text=True, check=False
                )
                assert checked.returncode == 0, (where, command, checked.stderr)
    assert set(kinds) == {"shell", "python", "json", "yaml"}
