"""One name for each piece of hardware, however people write it (data/hardware.yaml)."""

from __future__ import annotations

import re
from functools import cache

from kb.knowledge.load import read_yaml
from kb.settings import shipped_data
from kb.text.language import HAN

MAX_NAME = 64  # characters; no card has a longer name, and the patterns below cost its square
_MAKER = re.compile(r"^(?:nvidia|geforce|tesla|(?:amd[\s_-]+)?instinct|huawei)[\s_-]+")
_FORM = re.compile(r"[\s_-]+(?:sxm\d?|pcie|oam|nvl\d*|hbm\d\w*|\d+ ?gi?b?)(?=$|[\s_-])")
_WORD = re.compile(rf"[A-Za-z0-9]+|[{HAN}]+")
MAX_WORDS = 3  # of a name in a text
_JOINTS = re.compile(r"[\s_-]+")


def hardware_id(name: str) -> str:
    """The tag `name` stands for; an unknown name in lower case with dashes, a long one as it is."""
    plain = name.strip().lower()
    if len(plain) > MAX_NAME:
        return plain
    while (shorter := _MAKER.sub("", _FORM.sub("", plain))) != plain:
        plain = shorter
    return _ids().get(_JOINTS.sub("", plain)) or _JOINTS.sub("-", plain)


def hardware_in(text: str) -> frozenset[str]:
    """The tags of the hardware a text names, in one to three words."""
    words = [word.lower() for word in _WORD.findall(text)]
    ids = _ids()
    joined = (
        "".join(words[start : start + size])
        for size in range(1, MAX_WORDS + 1)
        for start in range(len(words) - size + 1)
    )
    return frozenset(ids[name] for name in joined if name in ids)


@cache
def _ids() -> dict[str, str]:
    names = read_yaml(shipped_data() / "hardware.yaml", dict[str, tuple[str, ...]])
    return {
        _JOINTS.sub("", spelling.lower()): identifier
        for identifier, others in names.items()
        for spelling in (identifier, *others)
    }
