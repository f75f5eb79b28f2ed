"""The composition root: builds the real parts. Nothing else in `kb` opens a resource."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from kb.components import Components
from kb.diagnose.evidence_model import WEIGHTS, Weights, load_weights
from kb.diagnose.fix_likeness import FixLikeness
from kb.diagnose.learned import LearnedWeights, TermReader, learned_stamp, load_learned
from kb.diagnose.linear_model import load_model
from kb.diagnose.reader import FOLDER as READER
from kb.diagnose.reader import Reader
from kb.diagnose.statement_model import StatementModel
from kb.diagnose.verdict import Engine
from kb.embed import embedded_model, load_embedder
from kb.embed.base import Embedder
from kb.errors import DataError, StoreError, UnreachableIndexError, UnreachableStoreError
from kb.files.state_folder import make_state_folder
from kb.index.follower import Follower
from kb.index.generation_places import generation_place
from kb.index.live import SearchIndex
from kb.index.sources import fingerprint
from kb.knowledge.cases import CASES_KEY, SITE_CASES_KEY
from kb.knowledge.framework_names import framework_names
from kb.knowledge.load import Knowledge, load_knowledge
from kb.knowledge.site import site_stamp
from kb.logs.event_log import EventVocabulary
from kb.logs.reader import LogReader
from kb.logs.scan.scanner import wrong_patterns
from kb.search.notes import NoteFinder
from kb.search.rerank import FOLDER as SEARCH
from kb.search.rerank import load_reranker
from kb.search.searcher import Searcher
from kb.service import Service
from kb.settings import Settings
from kb.settings_check.rules import value_matches
from kb.store import Store
from kb.text.salient_terms import SalientTerms
from kb.text.tokenizer import Tokenizer
from kb.types.entries import Entry, Filters

if TYPE_CHECKING:
    from kb.index.qdrant_index import QdrantIndex
    from kb.second_reader.asking import SecondReader

INDEX = "index"  # in the state folder
CASES_OF = "cases_of_release"  # scope of the preference that tells whose cases the store has
Notify = Callable[[str], None]


def _silent(_message: str) -> None:
    """Progress nobody reads."""


def open_service(
    settings: Settings, *, notify: Notify | None = None, rebuild: bool = False
) -> Service:
    """Open the knowledge base, building it from the shipped data where it is missing or old.

    Args:
        settings: where state and knowledge are.
        notify: told in one line when something is built.
        rebuild: build the search index anew, whatever is there.

    Raises:
        DataError: the knowledge files break their schema.
        StoreError: the database cannot be opened.
        SearchIndexError: the index cannot be used; the message names the repair.
    """
    say = notify or _silent
    _make_home(settings.home)
    site = site_stamp(settings.site)  # before it is read: what changes meanwhile is seen later
    knowledge = load_knowledge(settings.data, cache=settings.home / "cache", site=settings.site)
    for error in wrong_expressions(knowledge):
        raise error
    store = Store.of(settings)
    try:
        return _assemble(settings, knowledge, store, say, site=site, rebuild=rebuild)
    except BaseException:
        store.close()
        raise


def wrong_expressions(knowledge: Knowledge) -> Iterator[DataError]:
    """What is wrong with the expressions that a site folder adds."""
    yield from wrong_patterns(pattern for pattern in knowledge.patterns if pattern.origin)
    for advice in (item for item in knowledge.advice if item.origin):
        for rule in advice.rules:
            try:
                value_matches(rule.value, "", linear=True)
            except DataError as error:
                yield DataError(f"advice.yaml: value of {advice.id}: {error.what}", todo=error.todo)


def _assemble(
    settings: Settings,
    knowledge: Knowledge,
    store: Store,
    say: Notify,
    *,
    site: tuple[tuple[str, int, int], ...],
    rebuild: bool,
) -> Service:
    try:
        sync_cases(knowledge, store, say)
    except UnreachableStoreError as error:
        say(f"answers come from what is indexed: {error}")
    embedder = load_embedder(settings)
    tokenizer = Tokenizer(settings.data / "lexicon")
    stamp = learned_stamp(settings.home)
    learned = _learned_weights(settings, say)
    index = _open_index(settings, store, embedder, tokenizer, say, rebuild=rebuild)
    salient_terms = SalientTerms(settings.data / "lexicon")
    reranker = load_reranker(settings.data / SEARCH, framework_names(knowledge.framework_names))
    searcher = Searcher(
        store, index, embedder, tokenizer, salient=salient_terms.word, reranker=reranker
    )
    return Service(
        Components(
            settings=settings,
            knowledge=knowledge,
            store=store,
            searcher=searcher,
            note_finder=NoteFinder(knowledge.notes, embedded_model(settings.data), tokenizer),
            catch_up=index.catch_up,
            engine=_open_engine(settings, knowledge, tokenizer, learned),
            learned=learned,
            learn_again=partial(_learn_again, settings, knowledge, tokenizer),
            learned_stamp=stamp,
            site_stamp=site,
            make_reader=partial(
                LogReader,
                EventVocabulary.of(knowledge),
                cache=settings.home / "cache",
                max_line=settings.max_line,
            ),
            close=partial(
                _close, Follower(store, index) if settings.shared_store else store, index
            ),
            second_reader=_open_second_reader(settings, knowledge),
        )
    )


def _open_second_reader(settings: Settings, knowledge: Knowledge) -> SecondReader | None:
    """The language model that reads along, where one is set."""
    if not settings.llm_base_url:
        return None
    from kb.second_reader.asking import SecondReader
    from kb.second_reader.client import ModelClient
    from kb.second_reader.limits import Limits

    return SecondReader(
        ModelClient(
            settings.llm_base_url,
            settings.llm_model,
            settings.llm_api_key,
            limit_s=settings.llm_timeout,
        ),
        knowledge,
        Limits(settings.llm_per_minute, settings.llm_per_day),
        trust=float(settings.llm_trust) if settings.llm_trust else None,
        home=settings.home,
        address=settings.llm_base_url,
    )


def _learned_weights(settings: Settings, say: Notify) -> LearnedWeights | None:
    """What was learned of the team's outcomes; what cannot be used is passed over, and said."""
    try:
        return load_learned(settings.home, settings.data)
    except DataError as error:
        say(f"learned weights are not used: {error}")
        return None


def _learn_again(
    settings: Settings, knowledge: Knowledge, tokenizer: Tokenizer, engine: Engine
) -> tuple[LearnedWeights | None, Engine]:
    """The learned weights in use now, and the engine with them."""
    from kb.log_lines import logger

    log = logger()
    learned = _learned_weights(settings, log.warning)
    log.info("learned weights read", outcomes=learned.outcomes if learned else 0)
    return learned, engine.with_learned(*_with_learned(settings, knowledge, tokenizer, learned))


def _with_learned(
    settings: Settings,
    knowledge: Knowledge,
    tokenizer: Tokenizer,
    learned: LearnedWeights | None,
) -> tuple[Weights, TermReader | None]:
    weights = load_weights(settings.data / WEIGHTS)
    if learned is None:
        return weights, None
    terms = TermReader(learned.terms, tokenizer, knowledge.labels)
    return learned.added_to(weights), terms


def _open_engine(
    settings: Settings,
    knowledge: Knowledge,
    tokenizer: Tokenizer,
    learned: LearnedWeights | None,
) -> Engine:
    model = load_model(settings.data / READER)
    embedder = embedded_model(settings.data)
    fixes = [fix for cause in knowledge.causes for fix in cause.fixes]
    weights, terms = _with_learned(settings, knowledge, tokenizer, learned)
    return Engine(
        knowledge,
        weights,
        Reader(model, embedder, tokenizer),
        FixLikeness(fixes, embedder, tokenizer),
        terms,
        StatementModel.load(settings.data, embedder, tokenizer.normalise),
    )


def _open_index(
    settings: Settings,
    store: Store,
    embedder: Embedder,
    tokenizer: Tokenizer,
    say: Notify,
    *,
    rebuild: bool,
) -> SearchIndex | QdrantIndex:
    """The index of programs like this one, built where there is none, or anew when asked to."""
    index = _index_of(settings, store, embedder, tokenizer, say)
    if index.has_others():
        say("the model, word lists or filters are others than before: building a search index")
    if rebuild:
        index.rebuild()
        return index
    try:
        index.catch_up()
    except UnreachableIndexError as error:
        say(f"nothing is searched until it is back: {error}")
    except UnreachableStoreError:
        if not index.exists():
            raise
    return index


def _index_of(
    settings: Settings,
    store: Store,
    embedder: Embedder,
    tokenizer: Tokenizer,
    say: Notify = _silent,
) -> SearchIndex | QdrantIndex:
    """The index of programs like this one, as the settings say; nothing is read yet."""
    tokens = fingerprint(tokenizer, settings.data / "lexicon")
    if settings.shared_index:
        from kb.index.qdrant_connection import QdrantConnection, read_address
        from kb.index.qdrant_index import QdrantIndex
        from kb.index.sources import ChunkSources

        sources = ChunkSources(
            store=store, embedder=embedder, tokenizer=tokenizer, fingerprint=tokens
        )
        address = read_address(settings.index, settings.index_key)
        return QdrantIndex(QdrantConnection(address), sources, say)
    return SearchIndex(
        settings.home / INDEX,
        store=store,
        embedder=embedder,
        tokenizer=tokenizer,
        tokens=tokens,
        generations=generation_place(settings.generations) if settings.generations else None,
        notify=say,
    )


def _close(store: Store | Follower, index: SearchIndex | QdrantIndex) -> None:
    store.close()
    index.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """The search index as it lies on the disk, before anything is built.

    `outdated`: the next command builds it anew by itself. `behind`: it lacks later changes, which
    the next command adds.
    """

    entries: int
    outdated: bool = False
    behind: bool = False


def index_state(settings: Settings, store: Store) -> IndexState | None:
    """The state of the search index; None where there is none yet. Nothing is built.

    Raises:
        DataError: the embedded model cannot be read.
        SearchIndexError: the index is damaged; the message names the repair.
    """
    if not settings.shared_index and not (settings.home / INDEX).exists():
        return None
    embedder, tokenizer = load_embedder(settings), Tokenizer(settings.data / "lexicon")
    index = _index_of(settings, store, embedder, tokenizer)
    try:
        if not index.exists():
            return IndexState(entries=0, outdated=True) if index.has_others() else None
        entries = index.published().entries
        return IndexState(entries=entries, behind=bool(index.behind()))
    finally:
        index.close()


def _make_home(home: Path) -> None:
    try:
        make_state_folder(home)
        (home / "cache").mkdir(exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{home} cannot be used: {error.strerror}",
            todo="set TIMEOUT_KB_HOME to a folder you may write to",
        ) from error


@cache
def this_release() -> str:
    """The version of this program; 0 where it runs without being installed."""
    try:
        return metadata.version("timeout-kb")
    except metadata.PackageNotFoundError:
        return "0"


def sync_cases(
    knowledge: Knowledge, store: Store, say: Notify = _silent, *, release: str = ""
) -> bool:
    """Bring the shipped cases in the store up to the knowledge; whether anything changed.

    Those that a newer release than `release` (by default this one) wrote stay as they are.
    """
    release = release or this_release()
    if not any(_case_changes(knowledge, store, release)) and _release_of(store) >= _key(release):
        return False
    with store.lock("cases.lock"):  # whoever waited sees what the other did
        changed, stale = _case_changes(knowledge, store, release)
        if changed:
            say(f"building the knowledge base: {len(changed)} cases")
            store.upsert(changed)
        if stale:
            store.delete(stale)
        if _release_of(store) < _key(release):
            store.preferences.put(CASES_OF, release.encode(), now_s=time.time())
    return bool(changed or stale)


def _case_changes(
    knowledge: Knowledge, store: Store, release: str
) -> tuple[list[Entry], list[str]]:
    """The cases to write and the ids of those to delete."""
    newer = _release_of(store) > _key(release)  # a site folder belongs to no release
    ours = (SITE_CASES_KEY,) if newer else (CASES_KEY, SITE_CASES_KEY)
    known = store.digests()
    changed = [
        case
        for case in knowledge.cases
        if known.get(case.source_key) != case.digest and case.source_key.startswith(ours)
    ]
    current = {case.source_key for case in knowledge.cases}
    if not any(key.startswith(ours) for key in known.keys() - current):
        return changed, []
    entries = store.iter_entries(Filters(kinds=("case",)))
    keys = ((entry.id, entry.source_key) for entry in entries)
    return changed, [one for one, key in keys if key.startswith(ours) and key not in current]


def _release_of(store: Store) -> Version:
    """The release whose cases the store has."""
    return _key((store.preferences.get(CASES_OF) or b"0").decode("utf-8", "replace"))


def _key(release: str) -> Version:
    try:
        return Version(release)
    except InvalidVersion:
        return Version("0")
