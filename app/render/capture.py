"""What a capture shows, in a few lines: who stands where, why if that is seen, what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.render import head
from app.render.columns import cut
from app.render.escape import plain, printable
from kb.diagnose.wording import rank_span
from kb.evidence.capture import CapturedHost, CaptureGap
from kb.evidence.stacks import StackGroup
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis

MAX_PLACES = 6
MAX_GAPS = 2
MAX_LINES = 15
LINE_CELLS = 240
SEEN = frozenset({"log", "rank"})  # evidence out of the output and the processes themselves


def render_capture(
    first_line: str,
    hosts: Sequence[CapturedHost],
    groups: Sequence[StackGroup],
    answer: Diagnosis | None,
    archive: Path,
    words: Words,
) -> str:
    """At most `MAX_LINES` lines of plain text."""
    lines = [first_line, *(f"  {line}" for line in standing_lines(groups, words))]
    lines += [f"  {line}" for line in cause_lines(answer, words)]
    path = plain(str(archive))
    lines.append(f"  {words('capture.archive', path=path)}")
    gaps = [gap for host in hosts for gap in host.gaps]
    lines += [f"  {line}" for line in _gap_lines(gaps, words)]
    lines.append(f"  {words('capture.details', path=path)}")
    return "\n".join(lines[:MAX_LINES]) + "\n"


def taken_line(hosts: Sequence[CapturedHost], words: Words) -> str:
    """How much was taken, and in what time."""
    processes = sum(host.processes for host in hosts)
    seconds = f"{max((host.took_s for host in hosts), default=0.0):.1f}"
    if len(hosts) < 2:
        return words("capture.taken", processes=processes, seconds=seconds)
    return words("capture.taken_hosts", hosts=len(hosts), processes=processes, seconds=seconds)


def standing_lines(groups: Sequence[StackGroup], words: Words) -> list[str]:
    """A line each place: which ranks are there, and whether they differ from the others."""
    if not groups:
        return [words("capture.no_stacks")]
    # The odd ones stand last and are what people look for: they stay whatever is left out.
    shown = [*groups[: MAX_PLACES - 1], *groups[MAX_PLACES - 1 :][-1:]]
    lines = [_standing_line(group, words) for group in shown]
    if len(groups) > len(shown):
        lines.append(words("capture.more_places", count=len(groups) - len(shown)))
    return lines


def _standing_line(group: StackGroup, words: Words) -> str:
    where = plain(f"{group.call} ({group.spot})" if group.spot else group.call or "?")
    ranks = rank_span(group.ranks)
    if not ranks:
        pids = words.listing(str(pid) for pid in group.pids)
        line = words("capture.processes_at", ranks=cut(pids, 60), where=where)
    elif len(group.ranks) == 1:
        line = words("capture.rank_at", ranks=ranks, where=where)
    else:
        line = words("capture.ranks_at", ranks=cut(ranks, 60), where=where)
    return words("capture.differs", what=line) if group.odd else line


def cause_lines(answer: Diagnosis | None, words: Words) -> list[str]:
    """The cause and what to do first, where the output or the processes show it; else that not."""
    if answer is None or not shows_cause(answer):
        return [words("capture.no_cause")]
    answer = printable(answer)
    cause = words("word.reason", what=words("head.certainty"), reason=head.certainty(answer, words))
    first = head.first_title(answer, words)
    if not first:
        return [cut(cause, LINE_CELLS)]
    step = words("word.reason", what=head.first_label(answer, words), reason=first)
    return [cut(cause, LINE_CELLS), cut(step, LINE_CELLS)]


def shows_cause(answer: Diagnosis) -> bool:
    """Whether the likeliest cause rests on what was seen, and not on likeness to others alone."""
    if answer.status != "diagnosed" or not answer.causes:
        return False
    return any(item.kind in SEEN and item.weight > 0 for item in answer.causes[0].evidence)


def _gap_lines(gaps: Sequence[CaptureGap], words: Words) -> list[str]:
    sentences = dict.fromkeys(gap_sentence(gap, words) for gap in gaps)
    lines = [cut(words("capture.missing", what=what), LINE_CELLS) for what in sentences]
    if len(lines) <= MAX_GAPS:
        return lines
    rest = words("capture.more_missing", count=len(lines) - MAX_GAPS)
    return [*lines[:MAX_GAPS], rest]


def gap_sentence(gap: CaptureGap, words: Words) -> str:
    """What could not be taken and why; numbers choose the form of a word."""
    if not words.has(gap.label):  # of another version
        return plain(gap.label)
    values = {
        name: int(value) if value.isdigit() else plain(value) for name, value in gap.values.items()
    }
    return words(gap.label, **values)
