"""The printed conversations show what people saw."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.slack.fake_slack import FakeSlack
from tests.slack.render import workspace_text
from tests.slack.transcript import chinese_scene, file_scene, hostile_scene, limits_report
from tests.slack.workspace import Message, Workspace

Scene = Callable[[FakeSlack, Workspace], Message]
SCENES = {
    chinese_scene: ("checkpoint-io", "小李:", "[就是它]", "那重启有用吗？", "only 小李 sees it"),
    file_scene: ("rank-crash", "ann:", "📎 job-4711.log", "[This was it]", "→ white_check_mark"),
    hostile_scene: ("rank-crash", "mallory:", "<!channel>", "more lines", "redacted"),
}


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_scene_is_told_as_it_happened(slack: FakeSlack, alpha: Workspace, scene: Scene) -> None:
    """People, answers, buttons and reactions stand in the text; the answer keeps the limits."""
    answer = scene(slack, alpha)
    shown = workspace_text(alpha)
    assert [part for part in SCENES[scene] if part not in shown] == []  # type: ignore[index]
    report = limits_report(answer)
    assert "problems          none" in report
    assert "mentions          0" in report
