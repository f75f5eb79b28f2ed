"""A diagnosis in the form asked for, the same for every face that shows text."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis
from kb.types.knowledge import Bilingual


def render_diagnosis(
    diagnosis: Diagnosis,
    labels: Mapping[str, Bilingual],
    form: str,
    *,
    width: int,
    full: bool = False,
    more: str = "head.full",
) -> str:
    """`diagnosis` as ``json``, ``markdown``, ``short``, ``ranks`` (the table alone) or ``text``.

    Text is one screen of `width` cells where the label `more` says how to see the rest, or all of
    it if `full`.
    """
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(diagnosis), indent=2).decode() + "\n"
    words = Words(labels, diagnosis.language)
    if form == "markdown":
        from app.render.markdown import render_markdown

        return render_markdown(diagnosis, words)
    if form == "short":
        from app.render.short import render_short

        return render_short(diagnosis, words)
    from app.render.one_screen import render_screen
    from app.render.terminal import render_ranks, render_text

    if form == "ranks":
        return render_ranks(diagnosis, words)
    if full:
        return render_text(diagnosis, words, width=width)
    return render_screen(diagnosis, words, width=width, more=more)
