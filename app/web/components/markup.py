"""HTML of our own with other people's text in it, safely: the only door to raw HTML in the page.

A template is a literal of ours; every value put into it is escaped and freed of control and
reordering characters first. Nothing else in the page writes HTML or Markdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import streamlit as st
from markupsafe import Markup, escape

from app.render.escape import plain, plain_block, safe_url

NOTHING = Markup("")
BREAK, DOT = Markup("<br>"), Markup(" · ")  # between parts


def html(template: str, /, **values: object) -> Markup:
    """Fill a literal `template` of ours with values; what is not `Markup` is shown as plain text.

    >>> html("<b>{word}</b>", word="<script>")
    Markup('<b>&lt;script&gt;</b>')
    """
    return Markup(template).format(**{name: safe(value) for name, value in values.items()})  # noqa: S704 - escapes every value


def safe(value: object) -> Markup:
    """`value` as HTML that shows exactly these characters, on one line."""
    return value if isinstance(value, Markup) else escape(plain(str(value)))


def block(text: str) -> Markup:
    """`text` as HTML that keeps breaks and indentation, for elements that show them."""
    return escape(plain_block(text))


def join(parts: Iterable[Markup], between: Markup = NOTHING) -> Markup:
    """The parts one after the other."""
    return between.join(part for part in parts if part)


def link(text: str, url: str, *, kind: str = "") -> Markup:
    """A link that opens beside this page; the text alone where the address is not http(s)."""
    address = safe_url(url)
    if not address:
        return safe(text)
    return html(
        '<a class="{kind}" href="{url}" target="_blank" rel="noopener noreferrer">{text}</a>',
        kind=kind,
        url=Markup(escape(address)),  # noqa: S704 - escaped here; checked to be plain http(s)
        text=text,
    )


def badge(text: str, tone: str = "quiet") -> Markup:
    """A short word in a frame; `tone` is good, likely, possible, bad, quiet or info."""
    return html('<span class="tk-badge tk-{tone}">{text}</span>', tone=tone, text=text)


def bar(share: float, label: str = "") -> Markup:
    """A bar filled to a share between 0 and 1, in the colour of the tone around it."""
    return html(
        '<div class="tk-bar" role="img" aria-label="{label}"><i style="width:{width}%"></i></div>',
        label=label,
        width=round(100 * min(1.0, max(0.0, share)), 1),
    )


def note(text: str, tone: str = "quiet", *, role: str = "status") -> Markup:
    """A sentence that stands out; `tone` as of `badge`, `role` status or alert."""
    return html(
        '<div class="tk-note tk-{tone}" role="{role}">{text}</div>', tone=tone, role=role, text=text
    )


def paragraph(content: Markup | str) -> Markup:
    """A paragraph."""
    return html("<p>{content}</p>", content=content)


def section(title: str, content: Markup, *, level: int = 2) -> Markup:
    """Content under a heading; nothing where there is none."""
    return heading(title, level=level) + content if content else NOTHING


def faint(text: str) -> Markup:
    """A line of lesser weight."""
    return html('<p class="tk-faint">{text}</p>', text=text)


def quote(text: str) -> Markup:
    """A literal piece of a log, or nothing where it is empty."""
    return html('<code class="tk-quote">{text}</code>', text=text) if text else NOTHING


def listed(items: Sequence[Markup | str], *, ordered: bool = False) -> Markup:
    """A list of the items, or nothing where there are none."""
    if not items:
        return NOTHING
    rows = join(html("<li>{item}</li>", item=item) for item in items)
    if ordered:
        return html('<ol class="tk-list">{rows}</ol>', rows=rows)
    return html('<ul class="tk-list">{rows}</ul>', rows=rows)


def table(rows: Sequence[Sequence[Markup | str]]) -> Markup:
    """A table whose first row holds the column names; wide ones scroll by themselves."""
    head, *body = rows
    cells = join(html("<th scope='col'>{cell}</th>", cell=cell) for cell in head)
    lines = join(
        html("<tr>{cells}</tr>", cells=join(html("<td>{cell}</td>", cell=cell) for cell in row))
        for row in body
    )
    return html(
        '<div class="tk-scroll" tabindex="0"><table class="tk-table">'
        "<thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table></div>",
        cells=cells,
        lines=lines,
    )


def pairs(rows: Iterable[tuple[str, Markup | str]]) -> Markup:
    """Labels with their values."""
    lines = join(
        html("<div><dt>{label}</dt><dd>{value}</dd></div>", label=label, value=value)
        for label, value in rows
    )
    return html('<dl class="tk-pairs">{lines}</dl>', lines=lines) if lines else NOTHING


def heading(text: Markup | str, *, level: int = 2) -> Markup:
    """A heading; the page's own is of level 1."""
    tag = Markup(f"h{int(level)}")  # noqa: S704 - a number
    return html(
        '<{tag} class="tk-h{level}">{text}</{tag}>',
        tag=tag,
        level=int(level),
        text=text,
    )


def show(content: Markup) -> None:
    """Put HTML on the page.

    Raises:
        TypeError: the content did not come from this module, so nobody escaped it.
    """
    if not isinstance(content, Markup):
        raise TypeError(f"only Markup may be shown as HTML, not {type(content).__name__}")
    if content.strip():
        # The element around it keeps Streamlit from taking a short text for a file's name.
        st.html(str(html("<div class='tk'>{content}</div>", content=content)))
