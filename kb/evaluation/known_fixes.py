"""Whether the fix that is known to have helped is among the first shown.

``data/golden/fixes.jsonl`` names, for labelled threads, the fixes of data/causes.yaml and of cases
that say what helped there in other words. Each thread is diagnosed by weights that never saw its
project and without its own case. A fix can only be right under the right cause, so the fixes listed
under the thread's cause are judged as well. And each thread is pasted as by somebody who met it
again: its own case is there, whose fix is known to have helped, and the weights are the shipped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kb.errors import InputError
from kb.evaluation.intervals import share
from kb.evaluation.measure import held_out_verdicts
from kb.evaluation.published import Interval
from kb.knowledge.load import Knowledge
from kb.service import Service
from kb.train.samples import relate
from kb.train.threads import LabelledThread
from kb.types.answer import Diagnosis
from kb.types.vocabulary import Language

GOLDEN_FIXES = "fixes.jsonl"  # of data/golden
SHOWN = 3  # fixes a person reads
TUNED, APART = "tuned on", "kept apart"  # halves of the threads: rules are written with one of them


class KnownFix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A thread and the fixes that say what helped there; none where nothing shipped says it."""

    thread: str
    fixes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedFix:
    """What a thread was shown.

    Attributes:
        known: ids of the fixes that say what helped.
        first_cause: the cause that was named first.
        shown: ids of the fixes listed under it.
        under_cause: ids of the fixes listed under the thread's own cause.
        again: ids of the fixes shown, in order, where its own cases are not left out.
        own: ids of its own cases.
    """

    thread: str
    cause: str
    known: tuple[str, ...]
    first_cause: str
    shown: tuple[str, ...]
    under_cause: tuple[str, ...]
    again: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()

    @property
    def half(self) -> str:
        """The half of the threads this one is in, by its id."""
        return (TUNED, APART)[hashlib.sha256(self.thread.encode()).digest()[0] % 2]


def load_known_fixes(path: Path, knowledge: Knowledge) -> tuple[KnownFix, ...]:
    """Read threads with the fixes that helped, one JSON object a line.

    Raises:
        InputError: the file is missing, a line is no such object, or a fix is not shipped.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        what = f"{path}: {error.strerror}"
        raise InputError(what, todo="give the path of a fixes.jsonl") from error
    shipped = {fix.id for cause in knowledge.causes for fix in cause.fixes}
    shipped |= {fix.id for case in knowledge.cases for fix in case.fixes}
    known = []
    for number, line in enumerate(lines, start=1):
        try:
            item = msgspec.json.decode(line, type=KnownFix)
        except msgspec.DecodeError as error:
            raise InputError(f"{path}, line {number}: {error}", todo="correct the line") from error
        if missing := sorted(set(item.fixes) - shipped):
            raise InputError(f"{path}, line {number}: no fix {missing[0]!r}", todo="correct it")
        known.append(item)
    return tuple(known)


def ask_fixes(
    service: Service, threads: Sequence[LabelledThread], known: Sequence[KnownFix]
) -> list[AskedFix]:
    """Ask for the fixes of every thread that `known` has, in its order.

    Raises:
        InputError: `known` has a thread that is not among `threads`.
    """
    relations = relate(threads, service)
    verdict_of = held_out_verdicts(service, threads, relations)
    by_id = {thread.id: thread for thread in threads}
    answers = []
    for item in known:
        thread = by_id.get(item.thread)
        if thread is None:
            raise InputError(f"no thread {item.thread!r}", todo="give the threads it was made for")
        verdict = verdict_of(thread)
        language: Language = "en" if thread.language == "en" else "zh"
        answer = service.render(verdict, language=language, top=len(service.knowledge.causes))
        answers.append(
            AskedFix(
                thread=thread.id,
                cause=thread.cause,
                known=item.fixes,
                first_cause=answer.causes[0].id if answer.causes else "",
                shown=_listed(answer, answer.causes[0].id) if answer.causes else (),
                under_cause=_listed(answer, thread.cause),
                again=_read_in_order(service.diagnose_text(thread.text, language=language)),
                own=frozenset(relations.excluded[thread.id]),
            )
        )
    return answers


def _listed(answer: Diagnosis, cause: str) -> tuple[str, ...]:
    return tuple(fix.id for item in answer.causes if item.id == cause for fix in item.fixes)


def _read_in_order(answer: Diagnosis) -> tuple[str, ...]:
    """The fixes as a person reads them: of the case that is met, the first step, the rest."""
    first = answer.first_fix.fix if answer.first_fix else ""
    met = answer.met_before.fix_id if answer.met_before else ""
    listed = (fix.id for fix in answer.causes[0].fixes) if answer.causes else ()
    return tuple(dict.fromkeys(filter(None, (met or first, first, *listed))))


def fix_figures(answers: Sequence[AskedFix]) -> dict[str, tuple[Interval, Interval]]:
    """How often a known fix stands first, and among the first three, by what is judged."""
    right = [item for item in answers if item.first_cause == item.cause]
    return {
        "as answered": _places(answers, [item.shown for item in answers]),
        "where the cause is right": _places(right, [item.shown for item in right]),
        "under the true cause": _places(answers, [item.under_cause for item in answers]),
        "met again": _places(answers, [item.again for item in answers]),
    }


def _places(
    answers: Sequence[AskedFix], shown: Sequence[Sequence[str]]
) -> tuple[Interval, Interval]:
    pairs = list(zip(answers, shown, strict=True))

    def among(count: int) -> Interval:
        return share(pairs, lambda pair: any(_helped(pair[0], fix) for fix in pair[1][:count]))

    return among(1), among(SHOWN)


def _helped(answer: AskedFix, fix: str) -> bool:
    return fix in answer.known or fix.partition("/")[0] in answer.own


def missed(answers: Sequence[AskedFix]) -> list[AskedFix]:
    """The threads whose known fix is not among the first shown under their own cause."""
    return [item for item in answers if not {*item.known} & {*item.under_cause[:SHOWN]}]
