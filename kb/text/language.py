"""The language a text is written in, and the language of an answer: one policy for every face.

The chat also takes what a message orders (`kb.chat.sentences.message_language`) as requested.
"""

from __future__ import annotations

import re
from typing import cast

from kb.types.vocabulary import Language, LineKind

HAN = "\u3400-\u4dbf\u4e00-\u9fff"
MIN_HAN_SHARE = 0.08  # of the words; quoted names and paths stay below, see test_language.py
HAN_PER_WORD = 1.6  # characters of a Chinese word, to count both languages in words

DEFAULT_LANGUAGE: Language = "en"

_HAN = re.compile(f"[{HAN}]")
_LATIN_WORD = re.compile(r"[A-Za-z][A-Za-z'’]+")


def has_han(text: str) -> bool:
    """Whether `text` has a Chinese character."""
    return _HAN.search(text) is not None


def detect_language(text: str) -> Language:
    """The language a person wrote `text` in: program output is left out, for it is English.

    Where no line is a person's, all of them count.
    """
    from kb.text.line_kind import read_lines  # numpy: not for a command's help

    if not has_han(text):
        return "en"
    lines = read_lines(text)
    own = [line.text for line in lines if line.kind in (LineKind.PROSE, LineKind.MARKUP)]
    for part in (own, [line.text for line in lines]):
        han = sum(len(_HAN.findall(line)) for line in part) / HAN_PER_WORD
        latin = sum(len(_LATIN_WORD.findall(line)) for line in part)
        if han + latin:
            return "zh" if han >= MIN_HAN_SHARE * (han + latin) else "en"
    return "en"


def answer_language(
    requested: str | None,
    configured: str | None = "",
    text: str = "",
    *,
    fallback: str | None = "",
) -> Language:
    """The language to answer in: the first of these that is known.

    Args:
        requested: what the person asks for: an option, a parameter, a field of the body, the
            header Accept-Language, the choice on the page, an order in the chat.
        configured: what is set for the place: a Slack channel's language, else TIMEOUT_KB_LANG.
        text: what is answered; the language of the person's words in it counts, and that of
            the rest only where there are none.
        fallback: of what has no text: the browser's locale, the language of the last reply.

    English where none is known. A tag with a region counts by its first part (``zh-CN``); one of
    any other language than Chinese is answered in English.
    """
    known = requested or configured
    if not known and text.strip():
        return detect_language(text)
    known = known or fallback or DEFAULT_LANGUAGE
    return "zh" if known.lower().startswith("zh") else "en"


def language_choice(requested: str | None, configured: str | None = "") -> Language | None:
    """The language that is requested or configured; None: that of each text decides.

    For faces that hand a text on: `answer_language` then gets this as what is requested.
    """
    return cast("Language | None", requested or configured or None)
