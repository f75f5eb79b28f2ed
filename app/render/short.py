"""The diagnosis in ten lines of plain text, for a chat tool."""

from __future__ import annotations

from app.render import head, present
from app.render.columns import CUT, cut
from app.render.escape import printable, safe_url
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis, SimilarCase

MAX_LINES = 10
COMMAND_LINES = 3
LINE_CELLS = 240  # of one line; commands and addresses stay whole


def render_short(diagnosis: Diagnosis, words: Words) -> str:
    """What happened, what to do first, how sure and why, the line that says most, a like case.

    Plain text, at most `MAX_LINES` lines: whoever posts it escapes it as the place asks.
    """
    answer = printable(diagnosis)
    lines = [head.title(answer, words)]
    if answer.status == "no_timeout":
        return "\n".join([*lines, words("head.paste_more")]) + "\n"
    first = _labelled(head.first_label(answer, words), head.first_title(answer, words), words)
    lines += [*first, *_command(answer), *_labelled("", head.caution(answer, words), words)]
    lines += _labelled(words("head.certainty"), head.certainty_and_why(answer, words), words)
    met = _labelled(head.met_label(answer, words), head.met_before(answer, words), words)
    lines += [f"{line} {head.met_address(answer)}".strip() for line in met]
    lines += _labelled(*head.culprit_line(answer, words), words)
    likely = [cause for cause in answer.causes[1:] if not present.is_faint(cause)]
    others = words.listing(f"{cause.title} {present.cause_share(cause)}" for cause in likely)
    cases = [_case(case, words) for case in head.cases_not_met(answer)[:1]]
    room = MAX_LINES - len(lines) - len(cases)
    lines += _labelled(words("head.others"), others, words)[:room]
    return "\n".join([*lines, *cases]) + "\n"


def _labelled(label: str, text: str, words: Words) -> list[str]:
    """One line, cut where it is too long; none without a text."""
    if not text:
        return []
    return [cut(words("word.reason", what=label, reason=text) if label else text, LINE_CELLS)]


def _case(case: SimilarCase, words: Words) -> str:
    title = words("word.reason", what=words("head.similar"), reason=case.title)
    return f"{cut(title, LINE_CELLS)} {safe_url(case.url) or case.id}"


def _command(answer: Diagnosis) -> list[str]:
    """The first step's command, of a long one its first lines."""
    lines = answer.first_fix.command.split("\n") if answer.first_fix else []
    if len(lines) > COMMAND_LINES:
        lines = [*lines[: COMMAND_LINES - 1], CUT]
    return [f"    {line}" for line in lines if line]
