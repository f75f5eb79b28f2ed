"""Names of settings: the known one a misspelt name means, and the settings a question is about."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from kb.text.tokenizer import default_tokenizer
from kb.types.knowledge import Advice

# Families whose names are known nearly completely; elsewhere an unknown name is just unknown.
PREFIXES = ("NCCL_", "TORCH_NCCL_", "TORCH_FR_", "GLOO_", "HCCL_")
# SequenceMatcher's ratio in [0, 1]: one or two letters wrong in a name of 15. At 0.85 pairs of
# real names of one family begin to look alike.
MIN_LIKENESS = 0.9
TORCH = "TORCH_"
SHOWN = 3
MIN_SHARE = 0.6  # of the words asked for that stand in a setting's name and effect
NAME_SHARE = 0.5  # a word in the name counts so much more than one in the effect
TEXTS_CACHED = 1024  # names and effects of all settings, about 2 KB each
LONG = 400  # characters; a longer question is a log, whose settings the advice check tells
_NAME = re.compile(r"(?<![\w.])[A-Za-z][A-Za-z0-9]*(?:[._][A-Za-z0-9]+)+")
_CAPITALS = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z")
# Words that ask for a setting; what else a question says is what the setting is about.
_ASKS = re.compile(
    r"参数|环境变量|变量|设置|配置项?|选项|开关"
    r"|\b(?:env(?:ironment)?|settings?|options?|variables?|vars?|parameters?|flags?|knobs?)\b",
    re.IGNORECASE,
)


def nearest_name(name: str, known: Collection[str]) -> str:
    """The known name that `name` misspells, empty where it is known or nothing is close.

    A missing or superfluous ``TORCH_`` counts as a misspelling; a difference in digits alone does
    not (``LL128`` and ``LL64`` are two settings).
    """
    if name in known or not name.startswith(PREFIXES):
        return ""
    for candidate in (TORCH + name, name.removeprefix(TORCH)):
        if candidate in known:
            return candidate
    family = sorted(other for other in known if other.startswith(PREFIXES))
    for candidate in difflib.get_close_matches(name, family, n=1, cutoff=MIN_LIKENESS):
        if _letters(candidate) != _letters(name):
            return candidate
    return ""


def _letters(name: str) -> str:
    return "".join(char for char in name if not char.isdecimal())


def find_advice(text: str, advice: Sequence[Advice]) -> tuple[Advice, ...]:
    """The settings `text` is about, best first: named ones in its order, else those it describes.

    A name nobody knows stands for the known one it is a misspelling of, where there is one.
    """
    if len(text) > LONG:
        return ()
    named = tuple(dict.fromkeys(_named(text, advice)))
    return (named or tuple(_described(text, advice)))[:SHOWN]


def _named(text: str, advice: Sequence[Advice]) -> Iterable[Advice]:
    names = _NAME.findall(text)
    if not names:
        return
    by_name = {item.id.rpartition(".")[2].lower(): item for item in advice}
    by_name |= {item.id.lower(): item for item in advice}
    spelt = {item.id: item for item in advice}
    for name in names:
        known = spelt.get(name) or by_name.get(name.lower())
        if known is None and _CAPITALS.match(name):
            known = spelt.get(nearest_name(name, spelt) or "")
        if known is not None:
            yield known


def _described(text: str, advice: Sequence[Advice]) -> list[Advice]:
    if not _ASKS.search(text):
        return []
    tokenizer = default_tokenizer()
    # a word counts where one of its translations stands, too: names are English
    words_of_text = dict.fromkeys(tokenizer.tokens(_ASKS.sub(" ", text)))
    wanted = [{form for form, _ in tokenizer.expand([word])} for word in words_of_text]
    matches: list[tuple[float, bool, int, bool, int, Advice]] = []
    for place, item in enumerate(advice):
        name = _words(item.id.replace("_", " "))
        words = name | _words(f"{item.effect.zh} {item.effect.en}")
        there = sum(bool(forms & words) for forms in wanted)
        if there and there >= MIN_SHARE * len(wanted):
            share = there + NAME_SHARE * sum(bool(forms & name) for forms in wanted)
            other = len(name.difference(*wanted))
            # of equals first those something reads, then the one that sets the group's timeout
            unread, aside = not item.read_by, not item.sets_group_timeout
            matches.append((-share, unread, other, aside, place, item))
    return [item for *_, item in sorted(matches, key=lambda match: match[:5])]


@lru_cache(TEXTS_CACHED)
def _words(text: str) -> frozenset[str]:
    """The words of a setting's name or effect, which every question is compared with."""
    return frozenset(default_tokenizer().tokens(text))
