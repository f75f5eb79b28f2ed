"""The pure parts of `make crash-replicas`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.replicas import holds
from tests.crash.site import balancer_config


def test_the_balancer_is_the_one_of_deploy(root: Path) -> None:
    """The example with other ports: its health check stays, the page goes."""
    text = balancer_config((root / "deploy" / "haproxy.cfg").read_text(), 9, [7, 8])
    servers = [line.split()[2] for line in text.splitlines() if line.startswith("    server ")]
    assert servers == ["127.0.0.1:7", "127.0.0.1:8"]
    assert "bind 127.0.0.1:9" in text
    assert "option httpchk GET /readyz" in text
    assert "8501" not in text.partition("global")[2]


@pytest.mark.parametrize(
    ("kind", "value", "now", "unsure", "fine"),
    [
        ("entry", "word", "word", False, True),
        ("entry", "word", "", False, False),
        ("outcome", "a", "b", False, False),
        ("outcome", "a", "b", True, True),
        ("outcome", "a", "half of b", True, False),
        ("outcome", "a", "", True, False),
        ("chat", "2", "3", False, True),
        ("chat", "2", "1", True, False),
    ],
)
def test_what_was_acknowledged_holds(
    kind: str, value: str, now: str, unsure: bool, fine: bool
) -> None:
    """Only a change that was cut off may have come after it."""
    assert holds(kind, value, now, unsure=unsure) is fine
