"""The words shown to people, out of `data/labels`, in one language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kb.errors import DataError
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import Language


class _Count(int):
    """A number that also chooses a form: ``{count} {count:case|cases}`` is ``1 case``."""

    def __format__(self, form: str) -> str:
        if "|" not in form:
            return super().__format__(form)
        one, several = form.split("|")
        return one if self == 1 else several


class Words:
    """Labels of one language: `words("word.line", line=7)` is ``line 7`` or ``第 7 行``."""

    def __init__(self, labels: Mapping[str, Bilingual], language: Language) -> None:
        self._labels = labels
        self.language: Language = language

    def __call__(self, name: str, /, **values: object) -> str:
        """The label called `name`, its braces filled with `values`.

        Raises:
            DataError: there is no such label.
        """
        label = self._labels.get(name)
        if label is None:
            raise DataError(f"label {name!r} is missing", todo="add it to data/labels")
        text = label.get(self.language)
        counted = {
            key: _Count(value) if isinstance(value, int) else value for key, value in values.items()
        }
        return text.format(**counted) if values else text

    def has(self, name: str) -> bool:
        """Whether there is a label called `name`."""
        return name in self._labels

    def term(self, group: str, value: str) -> str:
        """The label of a vocabulary's value, or the value itself where no label stands for it.

        Knowledge files may use values (a warning's verdict, say) nobody has written a label for;
        showing the bare value is better than no answer.
        """
        label = self._labels.get(f"{group}.{value}")
        return value if label is None else label.get(self.language)

    def listing(self, items: Iterable[str]) -> str:
        """Join the parts that are not empty, as the language does."""
        return self("word.list").join(item for item in items if item)


def in_both_languages(labels: Mapping[str, Bilingual], name: str, /, **values: object) -> Bilingual:
    """The label called `name` in Chinese and English, its braces filled with `values`.

    Raises:
        DataError: there is no such label.
    """
    return Bilingual(zh=Words(labels, "zh")(name, **values), en=Words(labels, "en")(name, **values))
