"""When a rule applies: value tests, versions, contradictions."""

from __future__ import annotations

import pytest

from kb.errors import DataError, InputError
from kb.settings_check.extract import SettingMention
from kb.settings_check.rules import (
    applying_rules,
    outside_lifetime,
    rule_holds,
    torch_release,
    value_matches,
)
from kb.types.knowledge import Advice, AdviceRule, Bilingual
from kb.types.vocabulary import AdviceVerdict

TEXT = Bilingual(zh="说明", en="text")


@pytest.mark.parametrize(
    ("test", "value", "expected"),
    [
        ("", "anything", True),
        ("on", "1", True),
        ("on", "True", True),
        ("on", "3", True),
        ("on", "0", False),
        ("on", "eth0", False),
        ("off", "0", True),
        ("off", "false", True),
        ("off", "1", False),
        ("=lo|docker0", "LO", True),
        ("=lo|docker0", "lo0", False),
        ("<600", "599", True),
        ("<600", "600", False),
        ("<600", "ten", False),
        (">31", "3_600", True),
        (">31", "31", False),
        (r"~[\^=].*", "^lo,docker0", True),
        (r"~[\^=].*", "eth0", False),
    ],
)
def test_value_tests(test: str, value: str, expected: bool) -> None:
    """Each form of value test accepts and refuses as its definition says."""
    assert value_matches(test, value) is expected


@pytest.mark.parametrize("test", ["1800", "<ten", "!x"])
def test_an_unknown_value_test_is_an_error(test: str) -> None:
    """A typing error in the data does not silently switch a rule off."""
    with pytest.raises(DataError, match="not known"):
        value_matches(test, "1")


@pytest.mark.parametrize(
    ("versions", "torch", "expected"),
    [
        ((), None, True),
        ((), "2.4", True),
        (("torch>=2.2",), "2.4", True),
        (("torch>=2.2",), "2.1.2", False),
        (("torch>=2.2,<2.8",), "2.8.0", False),
        (("torch>=2.11",), "2.9", False),  # versions, not decimals
        (("torch>=2.2",), None, None),
        (("torch<2.2",), None, False),  # no torch of today
        (("vllm>=0.24",), "2.4", None),
        (("vllm>=0.24", "torch>=2.8"), "2.4", False),
    ],
)
def test_versions(versions: tuple[str, ...], torch: str | None, expected: bool | None) -> None:
    """A rule holds, does not hold, or cannot be known, by torch's version."""
    assert rule_holds(versions, {"torch": torch_release(torch)}) is expected


def test_versions_of_other_packages() -> None:
    """A version of another package that was seen decides; torch's own stays unknown without one."""
    seen = {"vllm": "0.25.1", "nccl": "2.18.3"}
    assert rule_holds(("vllm>=0.24",), seen) is True
    assert rule_holds(("nccl>=2.21",), seen) is False
    assert rule_holds(("vllm>=0.24", "torch>=2.2"), seen) is None


@pytest.mark.parametrize(
    ("since", "until", "nccl", "bound"),
    [
        ("nccl>=2.12", "", "2.10.3", "nccl>=2.12"),
        ("nccl>=2.12", "", "2.12.7", ""),
        ("nccl>=2.12", "", "", ""),
        ("", "nccl>=2.4", "2.21.5", "nccl>=2.4"),
        ("", "nccl>=2.4", "2.3.7", ""),
        ("", "", "2.3.7", ""),
    ],
)
def test_lifetime_of_a_setting(since: str, until: str, nccl: str, bound: str) -> None:
    """A version seen before the first one or after the last one does not read the setting."""
    advice = Advice(id="A_B", read_by="x", effect=TEXT, sources=(), since=since, until=until)
    assert outside_lifetime(advice, {"nccl": nccl} if nccl else {}) == bound


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("2.4.0+cu121", "2.4.0"),
        ("v2.1.0a0+32f93b1", "2.1.0"),
        (" 2.13 ", "2.13"),
        ("1.13.1", "1.13.1"),
    ],
)
def test_release_of_a_version(text: str, release: str) -> None:
    """Local builds and pre-releases count as their release."""
    assert torch_release(text) == release


def test_a_version_that_is_none_is_refused() -> None:
    """The message names the value."""
    with pytest.raises(InputError, match="'nightly'"):
        torch_release("nightly")


def _rule(verdict: AdviceVerdict, value: str = "", versions: tuple[str, ...] = ()) -> AdviceRule:
    return AdviceRule(verdict=verdict, explanation=TEXT, value=value, versions=versions)


def _verdicts(advice: Advice, torch: str | None, *settings: str) -> list[str]:
    found = [
        SettingMention(name=name, value=value, line=line)
        for line, (name, _, value) in enumerate((text.partition("=") for text in settings), start=1)
    ]
    applies = applying_rules(found[0], advice, found, {"torch": torch_release(torch)})
    return [rule.verdict for rule in applies]


def test_nothing_else_is_said_of_what_nothing_reads() -> None:
    """Once `no_effect` is certain, the value no longer matters; while uncertain, both are told."""
    advice = Advice(
        id="A_B",
        read_by="x",
        effect=TEXT,
        sources=(),
        rules=(_rule("no_effect", versions=("torch>=2.8",)), _rule("lowers_default", "<9")),
    )
    assert _verdicts(advice, "2.8", "A_B=1") == ["no_effect"]
    assert _verdicts(advice, "2.4", "A_B=1") == ["lowers_default"]
    assert _verdicts(advice, None, "A_B=1") == ["no_effect", "lowers_default"]


def test_a_wrong_unit_outweighs_what_its_number_seems_to_do() -> None:
    """A value in the wrong unit is not also called too long."""
    rules = (_rule("hides_cause", ">9"), _rule("wrong_unit", ">99"))
    advice = Advice(id="A_B", read_by="x", effect=TEXT, sources=(), rules=rules)
    assert _verdicts(advice, None, "A_B=50") == ["hides_cause"]
    assert _verdicts(advice, None, "A_B=100") == ["wrong_unit"]


@pytest.mark.parametrize(
    ("other", "expected"),
    [("C_D=1", True), ("C_D=true", True), ("C_D=0", False), ("E_F=x", True), ("G_H=1", False)],
)
def test_a_contradiction_needs_its_partner(other: str, expected: bool) -> None:
    """`NAME` matches any value, `NAME=1` any switch that is on, other names never."""
    advice = Advice(
        id="A_B",
        read_by="x",
        effect=TEXT,
        sources=(),
        contradicts=("C_D=1", "E_F"),
        rules=(_rule("contradicts"),),
    )
    assert bool(_verdicts(advice, None, "A_B=1", other)) is expected
