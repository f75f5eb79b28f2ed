"""What a service is built of, how it is asked for an answer, and how it says that it is well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from kb.second_reader.limits import Usage
from kb.settings import Settings
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.diagnose.learned import LearnedWeights
    from kb.diagnose.verdict import Engine
    from kb.knowledge.load import Knowledge
    from kb.logs.reader import LogReader
    from kb.search.notes import NoteFinder
    from kb.search.searcher import Searcher
    from kb.second_reader.asking import SecondReader
    from kb.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """Whether the service can answer; `problems` say what is wrong and what to do.

    `second_reader` is what the language model was asked and what it cost, None where none is set.
    `site_waits` says that the site folder has changed since it was read, which a restart does.
    `index_behind` is how many changes of the knowledge base the search does not find yet: for
    moments while something is added; `index_failure` says why it stays so, or why the server that
    has the index cannot be reached: logs are diagnosed without similar entries. `store_failure`
    says why the database cannot be: what is indexed is still found, and nothing can be changed.
    """

    ready: bool
    problems: tuple[str, ...]
    entries: int
    cases: int
    second_reader: Usage | None = None
    site_waits: bool = False
    index_behind: int = 0
    index_failure: str = ""
    store_failure: str = ""


class AnswerOptions(TypedDict, total=False):
    """How to answer.

    Attributes:
        language: of the answer; by default that of the text.
        top: causes in the answer.
        torch: torch's version where the input does not say it.
        exclude: ids of entries that must not be used as evidence.
    """

    language: Language | None
    top: int | None
    torch: str | None
    exclude: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """The real parts, built by `kb.bootstrap`; tests hand in others."""

    settings: Settings
    knowledge: Knowledge
    store: Store
    searcher: Searcher
    note_finder: NoteFinder
    catch_up: Callable[[], bool]
    engine: Engine
    make_reader: Callable[[], LogReader]
    close: Callable[[], None]
    learned: LearnedWeights | None = None
    learn_again: Callable[[Engine], tuple[LearnedWeights | None, Engine]] | None = None
    learned_stamp: tuple[str, int, int] | None = None
    site_stamp: tuple[tuple[str, int, int], ...] = ()
    second_reader: SecondReader | None = None
