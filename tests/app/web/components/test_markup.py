"""Other people's text never becomes HTML, Markdown or a script of the page."""

from __future__ import annotations

import ast
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from app.render.escape import plain, plain_block
from app.web.components import markup, style

NASTY = st.text(
    alphabet=st.one_of(
        st.sampled_from("<>&\"'/={}`*_[]()!$\\\n\r\t\x1b\x9b\x00\u202e 1aw:"), st.characters()
    ),
    max_size=60,
)
HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(1)">'


class Reader(HTMLParser):
    """Collects the tags and the text of HTML as a browser would."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(str(content))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the tag with its attributes."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note the text."""
        self.text += data


@given(text=NASTY)
def test_a_value_is_text_and_nothing_else(text: str) -> None:
    """A browser sees our tags and, as text, exactly the printable characters of the value."""
    seen = Reader(markup.html('<p class="{kind}">{text}</p>', kind=text, text=text))
    assert seen.tags == [("p", {"class": plain(text)})]
    assert seen.text == plain(text)


@given(text=NASTY)
def test_a_block_keeps_its_lines(text: str) -> None:
    """Breaks and indentation survive; nothing becomes a tag."""
    seen = Reader(markup.html("<pre>{text}</pre>", text=markup.block(text)))
    assert [tag for tag, _ in seen.tags] == ["pre"]
    assert seen.text == plain_block(text)


@given(text=NASTY)
def test_values_are_not_templates(text: str) -> None:
    """Braces in a value are not filled in, and do not fail."""
    inner = markup.html("<b>{text}</b>", text=text)
    assert Reader(markup.html("<i>{inner}</i>", inner=inner)).text == plain(text)


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "data:text/html,x", " http://a", 'http://a"onclick="x', "//a", ""],
)
def test_only_plain_web_addresses_become_links(url: str) -> None:
    """Anything else leaves the text alone."""
    assert Reader(markup.link("here", url)).tags == []
    assert Reader(markup.link("here", url)).text == "here"


def test_a_link_opens_beside_and_tells_nobody_where_from() -> None:
    """Its attributes are ours; an ampersand in the address stays one."""
    ((tag, attributes),) = Reader(markup.link("x", "https://example.org/?a=1&b=2")).tags
    assert tag == "a"
    assert attributes["href"] == "https://example.org/?a=1&b=2"
    assert attributes["rel"] == "noopener noreferrer"


def test_tables_lists_and_pairs_escape_their_cells() -> None:
    """Whatever is put in comes out as text."""
    for content in (
        markup.table([["name"], [HOSTILE]]),
        markup.listed([HOSTILE]),
        markup.pairs([(HOSTILE, HOSTILE)]),
        markup.badge(HOSTILE),
        markup.quote(HOSTILE),
        markup.heading(HOSTILE),
    ):
        seen = Reader(content)
        assert HOSTILE in seen.text
        assert not {"script", "img"} & {tag for tag, _ in seen.tags}


def test_text_cannot_be_shown_as_html() -> None:
    """What did not go through `html` is refused before it reaches the page."""
    with pytest.raises(TypeError, match="only Markup"):
        markup.show("<b>x</b>")  # type: ignore[arg-type]


def calls_of(path: Path) -> list[tuple[str, ast.Call]]:
    """All calls of a file by their dotted names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [(ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def web_files(root: Path) -> list[Path]:
    """The files of the page."""
    return sorted((root / "app" / "web").rglob("*.py"))


def test_no_page_writes_markdown_or_html_by_itself(root: Path) -> None:
    """Only `markup` and `style` hand HTML to Streamlit, and nobody hands it Markdown."""
    forbidden = {"st.markdown", "st.write", "st.write_stream", "st.caption", "st.html", "st.latex"}
    forbidden |= {"st.title", "st.header", "st.subheader", "st.error", "st.warning", "st.info"}
    forbidden |= {"st.success", "st.toast", "st.iframe", "st.metric", "components.html"}
    wrong = [
        f"{path.name}:{call.lineno} {name}"
        for path in web_files(root)
        if path.name not in ("markup.py", "style.py")
        for name, call in calls_of(path)
        if name in forbidden
        or any(
            keyword.arg in ("unsafe_allow_html", "unsafe_allow_javascript")
            for keyword in call.keywords
        )
    ]
    assert wrong == []


def test_templates_are_literals(root: Path) -> None:
    """The template of `html` is written in the code, never put together from values.

    And nothing but `markup` declares a text to be safe, literals and escaped addresses aside.
    """
    wrong = []
    for path in web_files(root):
        for name, call in calls_of(path):
            if name in ("html", "markup.html"):
                template = call.args[0]
                if not (isinstance(template, ast.Constant) and isinstance(template.value, str)):
                    wrong.append(f"{path.name}:{call.lineno} template")
            if name.endswith("Markup") and path.name != "markup.py":
                inner = call.args[0]
                escaped = isinstance(inner, ast.Call) and ast.unparse(inner.func) == "escape"
                if not (escaped or isinstance(inner, ast.Constant)):
                    wrong.append(f"{path.name}:{call.lineno} {name}")
    assert wrong == []


def test_code_boxes_are_plain_text(root: Path) -> None:
    """`st.code` gets no language: nothing in a log is parsed to colour it."""
    wrong = [
        f"{path.name}:{call.lineno}"
        for path in web_files(root)
        for name, call in calls_of(path)
        if name == "st.code"
        and not any(
            keyword.arg == "language" and ast.unparse(keyword.value) == "None"
            for keyword in call.keywords
        )
    ]
    assert wrong == []


def luminance(colour: str) -> float:
    """Relative luminance; source: WCAG 2.2, https://www.w3.org/TR/WCAG22/#dfn-relative-luminance."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [style.LIGHT, style.DARK], ids=["light", "dark"])
def test_text_is_readable_in_both_themes(theme: dict[str, str]) -> None:
    """Text, links and the primary colour stand out from both grounds by at least 4.5."""
    for ground in ("backgroundColor", "secondaryBackgroundColor"):
        for ink in ("textColor", "linkColor", "primaryColor"):
            assert contrast(theme[ink], theme[ground]) >= 4.5, (ink, ground)


@pytest.mark.parametrize("tone", sorted(style.TONES))
def test_tones_are_readable(tone: str) -> None:
    """The words of a tone stand out from its ground, light and dark."""
    ink, ground, ink_dark, ground_dark = style.TONES[tone]
    assert contrast(ink, ground) >= 4.5
    assert contrast(ink_dark, ground_dark) >= 4.5


def test_markup_stays_markup() -> None:
    """What is made of safe parts is not escaped twice."""
    inner = markup.html("<b>{t}</b>", t="&")
    assert markup.join([inner, inner]) == Markup("<b>&amp;</b><b>&amp;</b>")


def test_the_style_sheet_fetches_nothing() -> None:
    """No font, image or sheet comes from elsewhere."""
    sheet = style.sheet().lower()
    assert "url(" not in sheet
    assert "@import" not in sheet
    assert "http" not in sheet
