"""The sentences that say why a rank is named, from data/dump_reasons.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from kb.errors import DataError
from kb.knowledge import read_yaml
from kb.settings import shipped_data
from kb.types import Bilingual


@cache
def _templates() -> dict[str, Bilingual]:
    return read_yaml(shipped_data() / "dump_reasons.yaml", dict[str, Bilingual])


def reason(rule: str, values: Mapping[str, object]) -> Bilingual:
    """The sentence of `rule` filled with `values`, in both languages.

    Raises:
        DataError: the rule has no sentence or the sentence asks for a value that is not there.
    """
    template = _templates().get(rule)
    if template is None:
        raise DataError(f"dump_reasons.yaml: {rule!r} is missing", todo="add it, or reinstall")
    try:
        return Bilingual(zh=template.zh.format_map(values), en=template.en.format_map(values))
    except KeyError as error:
        raise DataError(f"dump_reasons.yaml: {rule!r} asks for {error}, which is unknown") from None
