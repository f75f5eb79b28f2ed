"""Version specifiers against versions seen: met, not met, or not to be told."""

from __future__ import annotations

import pytest

from kb.knowledge.versions import is_specifier, versions_meet


@pytest.mark.parametrize(
    ("specifiers", "version", "met"),
    [
        pytest.param([], "2.4", True, id="none"),
        pytest.param(["torch>=2.8"], "2.10.0", True, id="as-numbers"),
        pytest.param(["torch>=2.8"], "2.8.0", True, id="equal"),
        pytest.param(["torch>=2.8"], "2.4.1+cu121", False, id="local-part"),
        pytest.param(["torch>=2.8"], "2.8.0a0+git", False, id="before-the-release"),
        pytest.param(["torch>=2.2,<2.8"], "2.7.1", True, id="range"),
        pytest.param(["torch >= 2.2, < 2.8"], "2.8", False, id="spaces"),
        pytest.param(["torch<2.8"], "", None, id="unseen"),
        pytest.param(["torch>=2.8"], "nightly", None, id="not-a-version"),
        pytest.param(["nonsense"], "2.4", None, id="not-a-specifier"),
        pytest.param(["torch>=two"], "2.4", None, id="not-a-number"),
        pytest.param(["nccl>=2.18"], "2.4", None, id="another-package"),
        pytest.param(["nccl>=2.18", "torch>=2.2"], "2.4", None, id="one-unknown"),
        pytest.param(["nccl>=2.18", "torch>=2.8"], "2.4", False, id="one-not-met"),
        pytest.param(["torch>=2.2", "nccl>=2.18"], "2.4", None, id="unknown-last"),
    ],
)
def test_versions(specifiers: list[str], version: str, met: bool | None) -> None:
    """Versions compare as versions; what cannot be compared is neither met nor not."""
    assert versions_meet(specifiers, {"torch": version}) is met


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("torch>=2.2", True),
        ("torch_npu<2.8,>=2.1", True),
        ("torch", False),
        (">=2.2", False),
        ("torch>=two", False),
        ("torch 2.2", False),
    ],
)
def test_specifiers(text: str, is_one: bool) -> None:
    """A package name and at least one comparison with a version."""
    assert is_specifier(text) is is_one
