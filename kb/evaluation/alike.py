"""Whether the cases that an answer calls alike are alike.

Each labelled thread is diagnosed by weights that never saw its project and without its own cases.
A case shown beside the answer is alike where it has the thread's cause, or one as defensible.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from kb.diagnose.likeness import ALIKE
from kb.evaluation.intervals import share
from kb.evaluation.measure import held_out_verdicts
from kb.evaluation.published import Interval
from kb.service import Service
from kb.train.samples import relate
from kb.train.threads import LabelledThread
from kb.types.vocabulary import Language

BANDS = (ALIKE, 0.5, 0.6, 0.7, 1.01)  # of the score; below the first no case is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCase:
    """A case shown for a thread; `causes` are those the thread has, `place` counts from 1."""

    thread: str
    causes: tuple[str, ...]
    case: str
    cause: str
    score: float
    place: int

    @property
    def is_alike(self) -> bool:
        """Whether it has the thread's cause."""
        return self.cause in self.causes


def shown_cases(service: Service, threads: Sequence[LabelledThread]) -> list[ShownCase]:
    """The cases shown beside the answer to each thread that can be judged."""
    verdict_of = held_out_verdicts(service, threads, relate(threads, service))
    shown = []
    for thread in threads:
        if not thread.measurable:
            continue
        language: Language = "en" if thread.language == "en" else "zh"
        answer = service.render(verdict_of(thread), language=language)
        shown += [
            ShownCase(
                thread=thread.id,
                causes=(thread.cause, *thread.also),
                case=item.id,
                cause=item.cause,
                score=item.score,
                place=place,
            )
            for place, item in enumerate(answer.cases, start=1)
        ]
    return shown


def alike_figures(shown: Sequence[ShownCase]) -> dict[str, Interval]:
    """The share of shown cases that are alike: of all, of those shown first, and by score."""
    parts = {
        "all that are shown": list(shown),
        "the first": [one for one in shown if one.place == 1],
    }
    for low, high in itertools.pairwise(BANDS):
        name = f"score {low:.1f} and more" if high > 1 else f"score {low:.1f} to {high:.1f}"
        parts[name] = [one for one in shown if low <= one.score < high]
    return {name: share(part, lambda one: one.is_alike) for name, part in parts.items()}


def not_alike(shown: Sequence[ShownCase]) -> list[ShownCase]:
    """The cases shown that have another cause, the surest first."""
    return sorted((one for one in shown if not one.is_alike), key=lambda one: -one.score)
