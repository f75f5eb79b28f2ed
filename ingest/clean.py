"""Taking a site's furniture off an article: menus, share bars, recommendations, footers.

Rules stand on structure (cards of name, description, language and numbers; runs of links; number
gutters beside code) and on the marker words of `data/ingest/furniture.yaml`. Nothing inside a code
block is touched.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ingest.sections import bare_title, role_of, role_words
from ingest.wordlists import WordLists

MAX_LINE = 20_000  # characters; no paragraph is as long
MAX_MARKER_LINE = 60  # characters; a longer line that starts with a marker is a sentence
MAX_FURNITURE_LINE = 240  # characters; copyright notices reach it, paragraphs are not looked at
MIN_CARDS = 2  # one line "C" above a number can be part of an article, two are a list
MIN_LINKS = 4  # lines that are nothing but a link, one after the other
MIN_GUTTER = 3  # numbers in sequence, one a line
HEAD_LINES = 15  # lines with text in which title, author and date stand
MAX_TITLE = 160  # characters
_NUMBER = re.compile(r"^[0-9]{1,4}(?:[.,][0-9]{1,3})?\s?[KkMmWw万]?$")
_LINK_LINE = re.compile(r"^\s*(?:[-*+•]\s+|[0-9]{1,2}\.\s+)?\[[^\]]*\]\([^)\s]*\)\s*$")
_DOUBLED = re.compile(r"^(.{2,60})\1$")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_CRUMB = re.compile(r"^\s*[/>»›]\s+")
_SENTENCE_END = re.compile(r"[。.!?!?;;::]\s*$")
_INVISIBLE = str.maketrans({"\u00a0": " ", "\u3000": " ", "\u200b": "", "\u200e": "", "\ufeff": ""})
_STRONG_HAN = 8  # characters: a Chinese line this short that tells a role is a section title
_STRONG_SHARE = 0.5  # of an English title that the words of its role make up
_DATE = re.compile(r"([0-9]{4})[^0-9]([0-9]{1,2})[^0-9]([0-9]{1,2})")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleHead:
    """What stands above an article; `start` is the index of its first line."""

    title: str = ""
    author: str = ""
    date: str = ""
    start: int = 0


def tidy(text: str) -> list[str]:
    """Lines of `text` without invisible characters and trailing space, cut at `MAX_LINE`."""
    return [line.rstrip()[:MAX_LINE] for line in text.translate(_INVISIBLE).splitlines()]


def read_head(lines: Sequence[str], words: WordLists) -> ArticleHead:
    """Title, author and date of an article, and where its text starts.

    The title is the line above the byline; without a byline it is the first line that is not
    furniture, if that is no sentence.
    """
    filled = [index for index, line in enumerate(lines) if line.strip()][:HEAD_LINES]
    named = [
        (index, by)
        for index in filled
        if len(lines[index]) <= MAX_TITLE and (by := byline(lines[index], words))
    ]
    if not named:
        first = next((i for i in filled if not _is_head_furniture(lines[i], words)), None)
        if first is None or not _is_title(lines[first]):
            return ArticleHead()
        return ArticleHead(title=bare_title(lines[first]), start=_after(lines, first, words))
    place = named[0][0]
    above = [i for i in filled if i < place and not _is_head_furniture(lines[i], words)]
    below = [i for i in filled if i > place and not _is_head_furniture(lines[i], words)]
    title_at = above[-1] if above else next((i for i in below if _is_title(lines[i])), None)
    last = place
    for index, _ in named[1:]:
        if all(_is_head_furniture(line, words) for line in lines[last + 1 : index] if line.strip()):
            last = index
    start = max(last, place if title_at is None else title_at)
    return ArticleHead(
        title="" if title_at is None else _CRUMB.sub("", bare_title(lines[title_at])),
        author=next((author for _, (author, _) in named if author), ""),
        date=next((date for _, (_, date) in named if date), ""),
        start=_after(lines, start, words),
    )


def _after(lines: Sequence[str], index: int, words: WordLists) -> int:
    """The first line below `index` that is neither empty nor furniture."""
    index += 1
    while index < len(lines) and (
        not lines[index].strip() or _is_head_furniture(lines[index], words)
    ):
        index += 1
    return index


def byline(line: str, words: WordLists) -> tuple[str, str] | None:
    """Author and ISO date of a byline (either may be empty), or None."""
    text = line.strip()
    for pattern in words.signs.bylines:
        match = re.match(pattern, text)
        if match:
            named = match.groupdict()
            date = iso_date(named.get("date") or "")
            return (named.get("author") or "").strip(" :|·,\uff1a"), date
    return None


def web_address(text: str) -> str:
    """The address if a browser may be sent there, else an empty string."""
    return text if text.lower().startswith(("http://", "https://")) else ""


def iso_date(text: str) -> str:
    """``2025-05-20`` out of the usual ways to write a date, empty where there is none.

    Where the text names no more, ``2025-05`` or ``2025``.
    """
    if re.fullmatch(r"[0-9]{4}(?:-(?:0[1-9]|1[0-2]))?", text):
        return text
    if match := _DATE.search(text):
        year, month, day = (int(part) for part in match.groups())
    else:
        month_name = re.search(r"([A-Za-z]{3})[a-z]*", text)
        numbers = [int(part) for part in re.findall(r"[0-9]+", text)]
        if not month_name or month_name[1].lower() not in _MONTHS or len(numbers) < 2:
            return ""
        month = _MONTHS.index(month_name[1].lower()) + 1
        day, year = numbers[:2]
    return f"{year:04}-{month:02}-{day:02}" if 1 <= month <= 12 and 1 <= day <= 31 else ""


def _is_title(line: str) -> bool:
    return len(line.strip()) <= MAX_TITLE and not re.search(r"[。;;]|[.::]$", line.strip())


def _is_head_furniture(line: str, words: WordLists) -> bool:
    return bool(_CRUMB.match(line)) or is_furniture(line, words)


def is_furniture(line: str, words: WordLists) -> bool:
    """Whether a line by itself is a site's and not an author's."""
    text = " ".join(line.split()).lstrip("#-*• ")
    if not text or len(text) > MAX_FURNITURE_LINE:
        return False
    furniture = words.furniture
    return text.lower() in furniture.lines or furniture.fits(text)


def drop_furniture(lines: Sequence[str], words: WordLists) -> list[str]:
    """The lines of an article without what the site put between and after them."""
    rest = _cut_end(_without_gutters(lines), words)
    rest = _cut_contents(_cut_links(_cut_cards(rest, words)), words)
    code = _code_mask(rest)
    rest = [
        line
        for line, inside in zip(rest, code, strict=True)
        if inside or not is_furniture(line, words)
    ]
    while rest and not rest[-1].strip():
        rest.pop()
    return rest


def _code_mask(lines: Sequence[str]) -> list[bool]:
    """For each line whether it belongs to a fenced block; an unclosed fence holds nothing."""
    fences = [index for index, line in enumerate(lines) if _FENCE.match(line)]
    mask = [False] * len(lines)
    for first, last in zip(fences[::2], fences[1::2], strict=False):
        mask[first : last + 1] = [True] * (last + 1 - first)
    return mask


def _without_gutters(lines: Sequence[str]) -> list[str]:
    """Lines without the line numbers a page prints beside its code: 1, 2, 3, one a line."""
    rest: list[str] = []
    index = 0
    while index < len(lines):
        stop = index
        while stop < len(lines) and lines[stop].strip() == str(stop - index + 1):
            stop += 1
        if stop - index >= MIN_GUTTER:
            index = stop
        else:
            rest.append(lines[index])
            index += 1
    return rest


def _cut_end(lines: Sequence[str], words: WordLists) -> list[str]:
    """Cut from the first end marker, or up to the section that follows it."""
    code = _code_mask(lines)
    rest: list[str] = []
    index = 0
    while index < len(lines):
        if not code[index] and _is_end(lines[index], words):
            following = _next_section(lines, index + 1, words)
            if following is None:
                break
            index = following
            continue
        rest.append(lines[index])
        index += 1
    return rest


def _is_end(line: str, words: WordLists) -> bool:
    text = line.strip().lstrip("#-*• ").strip().lower()
    if not text or len(text) > MAX_MARKER_LINE or re.search(r"[。.;]$", text):
        return bool(text) and text.rstrip(".") in words.furniture.ends
    return text.startswith(words.furniture.ends)


def _next_section(lines: Sequence[str], start: int, words: WordLists) -> int | None:
    """Where the article goes on: a plain section title with a sentence or a point below it."""
    for index in range(start, len(lines)):
        if not _is_strong_title(lines[index], words):
            continue
        below = [line.strip() for line in lines[index + 1 : index + 4] if line.strip()][:2]
        if any(
            _SENTENCE_END.search(line) or re.match(r"[-•*] |[0-9]+[.、]", line) for line in below
        ):
            return index
    return None


def _is_strong_title(line: str, words: WordLists) -> bool:
    role = role_of(line, words)
    if not role or role == "background":
        return False
    title = bare_title(line)
    if re.search("[\u4e00-\u9fff]", title):
        return len(title) <= _STRONG_HAN
    named = role_words(role, words).search(title)
    return named is not None and len(named[0]) >= _STRONG_SHARE * len(title)


def _cut_cards(lines: Sequence[str], words: WordLists) -> list[str]:
    """Cut lists of project cards, from the first card to the last one of each list."""
    spans = _card_spans(lines, words)
    if len(spans) < MIN_CARDS:
        return list(lines)
    drop: set[int] = set()
    begin, end = spans[0]
    count = 1
    for first, last in [*spans[1:], (len(lines) * 2, 0)]:
        between = lines[end + 1 : first]
        if first < len(lines) and not any(_is_strong_title(line, words) for line in between):
            end, count = last, count + 1
            continue
        if count >= MIN_CARDS:
            drop.update(range(begin, end + 1))
        begin, end, count = first, last, 1
    return [line for index, line in enumerate(lines) if index not in drop]


def _card_spans(lines: Sequence[str], words: WordLists) -> list[tuple[int, int]]:
    """First and last line of each card, in order."""
    furniture = words.furniture
    tail = _card_tail(furniture.languages)
    code = _code_mask(lines)
    spans: list[tuple[int, int]] = []
    for index, line in enumerate(lines):
        text = line.strip()
        if code[index] or not text:
            continue
        if text in furniture.languages and (last := _numbers_below(lines, index)) > index:
            low = spans[-1][1] + 1 if spans else 0
            spans.append((_card_start(lines, index, low), last))
        elif tail.fullmatch(text):
            spans.append((index, index))
    return spans


@cache
def _card_tail(languages: frozenset[str]) -> re.Pattern[str]:
    """A card whose parts a flattened page ran together: "…description.Python012"."""
    either = "|".join(re.escape(word) for word in sorted(languages, key=lambda w: (-len(w), w)))
    return re.compile(
        rf".{{4,}}(?:(?<![A-Za-z0-9_ =/-])(?:{either})[0-9]{{2,4}}"
        r"|(?:[。!?)]|暂无简介)[0-9]{2,3})$"
    )


def _numbers_below(lines: Sequence[str], index: int) -> int:
    """The last of the one or two number lines below a language's name, or `index`."""
    last = index
    for step in (1, 2):
        if index + step < len(lines) and _NUMBER.match(lines[index + step].strip()):
            last = index + step
        else:
            break
    return last


def _card_start(lines: Sequence[str], language: int, low: int) -> int:
    """The first line of a card: its description, and its name where that is recognisable."""
    start = language
    if start > low and lines[start - 1].strip():
        start -= 1
    if start > low:
        name = lines[start - 1].strip()
        if _DOUBLED.match(name) or (name and " " not in name and name.isascii()):
            start -= 1
    return start


def _cut_links(lines: Sequence[str]) -> list[str]:
    """Cut runs of lines that are nothing but links."""
    rest: list[str] = []
    run: list[str] = []
    for line in [*lines, "end"]:
        if _LINK_LINE.match(line) or (run and not line.strip()):
            run.append(line)
            continue
        if sum(1 for item in run if item.strip()) < MIN_LINKS:
            rest += run
        run = []
        rest.append(line)
    return rest[:-1]


def _cut_contents(lines: Sequence[str], words: WordLists) -> list[str]:
    """Cut a table of contents: its title and the lines under it that come again as titles."""
    for index, line in enumerate(lines):
        if bare_title(line).lower() not in words.signs.contents:
            continue
        stop = index + 1
        later = {bare_title(other) for other in lines[index + 1 :] if other.startswith("#")}
        later |= _repeated(lines[index + 1 :])
        while stop < len(lines) and (
            not lines[stop].strip() or bare_title(lines[stop].lstrip(" -*•")) in later
        ):
            if lines[stop].startswith("#"):
                break
            later.discard(bare_title(lines[stop].lstrip(" -*•")))
            stop += 1
        return [*lines[:index], *lines[stop:]]
    return list(lines)


def _repeated(lines: Sequence[str]) -> set[str]:
    counts = Counter(bare_title(line.lstrip(" -*•")) for line in lines)
    return {title for title, count in counts.items() if title and count > 1}
