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
    more: str = "word.more",
) -> str:
    """`diagnosis` as ``json``, ``markdown``, ``ranks`` (the table alone) or ``text``.

    `width` (cells), `full` and `more` are for text, as in `render_text`.
    """
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(diagnosis), indent=2).decode() + "\n"
    words = Words(labels, diagnosis.language)
    if form == "markdown":
        from app.render.markdown import render_markdown

        return render_markdown(diagnosis, words)
    from app.render.terminal import render_ranks, render_text

    if form == "ranks":
        return render_ranks(diagnosis, words)
    return render_text(diagnosis, words, width=width, full=full, more=more)
