"""One name for each piece of hardware, however people write it (data/hardware.yaml)."""

from __future__ import annotations

import re
from functools import cache

from kb.knowledge.load import read_yaml
from kb.settings import shipped_data

MAX_NAME = 64  # characters; no card has a longer name, and the patterns below cost its square
_MAKER = re.compile(r"^(?:nvidia|geforce|tesla|(?:amd[\s_-]+)?instinct|huawei)[\s_-]+")
_FORM = re.compile(r"[\s_-]+(?:sxm[0-9]?|pcie|oam|nvl[0-9]*|hbm[0-9]\w*|[0-9]+ ?gi?b?)(?=$|[\s_-])")
_JOINTS = re.compile(r"[\s_-]+")


def hardware_id(name: str) -> str:
    """The tag `name` stands for; an unknown name in lower case with dashes, a long one as it is."""
    plain = name.strip().lower()
    if len(plain) > MAX_NAME:
        return plain
    while (shorter := _MAKER.sub("", _FORM.sub("", plain))) != plain:
        plain = shorter
    return hardware_spellings().get(_JOINTS.sub("", plain)) or _JOINTS.sub("-", plain)


@cache
def hardware_spellings() -> dict[str, str]:
    """The tag of every spelling, which is in lower case without spaces and dashes."""
    names = read_yaml(shipped_data() / "hardware.yaml", dict[str, tuple[str, ...]])
    return {
        _JOINTS.sub("", spelling.lower()): identifier
        for identifier, others in names.items()
        for spelling in (identifier, *others)
    }
