"""How many secrets go and how many harmless look-alikes stay, over generated samples.

At first sight, each batch of kinds written blind and only then learned from: .764 (458 samples of
114 kinds), .728 (136 of 34, harder on purpose), .828 (128 of 32), .851 (148 of 148), .915 (330 of
183), .803 (310 of 132, by another writer). Kinds nobody thought of go at about that rate, not at
that of the tests below. Of look-alikes nobody had seen 1 of 295 was destroyed, then 3 of 127, 3 of
330, 7 of 310.
"""

from __future__ import annotations

import sys

import pytest

from kb.text.redact import PIECE, redact, redact_name
from tests.kb.text.secret_samples import (
    FIRST_SIGHT,
    KINDS,
    Sample,
    destroyed,
    harmless,
    secrets,
    survives,
)
from tests.kb.text.test_redact_gate import by_all_rules

RECALL = 0.99
DESTROYED = 0.01


def _shown(samples: list[Sample]) -> str:
    return "\n".join(
        f"{s.kind} ({s.setting}): {s.text!r} -> {redact(s.text)[0]!r}" for s in samples
    )


@pytest.mark.parametrize("seed", ["secrets", "another"])
def test_secrets_go(seed: str) -> None:
    """At least 99 of 100 secrets go, over at least 90 kinds, in every surrounding."""
    samples = secrets(KINDS, seed=seed)
    assert len(samples) >= 300
    assert len({sample.kind for sample in samples}) >= 90
    missed = [sample for sample in samples if survives(sample, redact(sample.text)[0])]
    assert len(missed) <= (1 - RECALL) * len(samples), _shown(missed)


def test_no_kind_survives_whole() -> None:
    """A kind of which most samples survive is a hole, however good the average."""
    by_kind: dict[str, list[bool]] = {}
    for sample in secrets(KINDS, each=6, seed="kinds"):
        by_kind.setdefault(sample.kind, []).append(survives(sample, redact(sample.text)[0]))
    assert [kind for kind, bad in by_kind.items() if sum(bad) > len(bad) / 2] == []


def test_look_alikes_stay() -> None:
    """At most one harmless value of a hundred is changed."""
    samples = harmless(each=9)
    assert len(samples) >= 300
    changed = [sample for sample in samples if destroyed(sample, redact(sample.text)[0])]
    assert len(changed) <= DESTROYED * len(samples), _shown(changed)


def test_twice_is_once() -> None:
    """What was redacted holds nothing more to redact."""
    for sample in secrets(KINDS):
        clean, _ = redact(sample.text)
        assert redact(clean) == (clean, 0), sample.text


def test_pieces_change_nothing() -> None:
    """A long log is looked at piece by piece; what goes is what goes of the whole."""
    filler = [f"[rank{n % 8}]: step {n} loss 2.31 mask=7 token {n}\n" for n in range(PIECE // 20)]
    for kind, sample in {
        s.kind: s for s in secrets(FIRST_SIGHT, each=1)[::10] if s.setting != "colours"
    }.items():
        text = "".join(
            [*filler, sample.text.replace("\x1b[36m", "").replace("\x1b[0m", ""), "\n", *filler]
        )
        assert redact(text) == by_all_rules(text), kind


def test_a_private_key_longer_than_a_piece_goes() -> None:
    """Its text ends at no known place, so it is never cut."""
    body = "\n".join("MIIEpAIBAAKCAQEA7Zq" * 3 for _ in range(PIECE // 20))
    key = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
    filler = "step 1 loss 2.31\n" * PIECE
    assert redact(f"{filler}{key}\nafter")[0] == f"{filler}<redacted:private-key>\nafter"


def test_every_gate_holds_its_rule() -> None:
    """What a rule takes its own gate lets through; one that is too narrow would hide secrets."""
    module = sys.modules["kb.text.redact"]
    for sample in secrets(KINDS, seed="gates"):
        for rule, gate in zip(module._RULES, module._gates, strict=True):
            if rule.apply(sample.text)[1]:
                assert gate(sample.text), (rule.gate, sample.text)
                assert not module.is_clean(sample.text), sample.text


def test_names_of_files_hold_no_secret() -> None:
    """A token, a key and a password in a file's name go; what kind of file it is stays."""
    names = secrets({k: v for k, v in FIRST_SIGHT.items() if len(v[0]) < 60}, each=1, seed="names")
    plain = [sample for sample in names if not set("\n/\x1b") & set(sample.text)]
    assert len(plain) >= 25
    for sample in plain:
        name = f"run7_{sample.text.strip()}.log.gz"
        shown = redact_name(name)
        assert not survives(sample, shown), name
        assert shown.endswith(".log.gz")


@pytest.mark.parametrize(
    "name",
    ["rank_3.log", "logs/node7/stderr_12.txt", "nccl_trace_rank_0", "job-12345.out", "tokens.md"],
)
def test_plain_names_stay(name: str) -> None:
    """What tells rank, host and kind is left to the letter."""
    assert redact_name(name) == name
