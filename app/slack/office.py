"""What everything of the bot works with, made once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.slack.counters import Counters
    from app.slack.desk import Desk
    from app.slack.pool import Pool
    from app.slack.workspaces import Workspaces
    from kb.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """The parts of one bot."""

    desk: Desk
    workspaces: Workspaces
    pool: Pool
    counters: Counters
    settings: Settings
