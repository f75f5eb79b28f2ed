"""The composition root: builds the real parts. Nothing else in `kb` opens a resource."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kb.diagnose.evidence_model import WEIGHTS, Weights, load_weights
from kb.diagnose.fix_likeness import FixLikeness
from kb.diagnose.learned import LearnedWeights, TermReader, learned_stamp, load_learned
from kb.diagnose.reader import FOLDER as READER
from kb.diagnose.reader import Reader, load_model
from kb.diagnose.verdict import Engine
from kb.embed import embedded_model, load_embedder
from kb.embed.base import Embedder
from kb.errors import DataError, StoreError
from kb.files.atomic import write_file
from kb.files.state_folder import make_state_folder
from kb.index.live import SearchIndex
from kb.index.snapshot import fingerprint
from kb.knowledge.cases import CASES_KEY, SITE_CASES_KEY
from kb.knowledge.facets import FACETS
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
from kb.service import Components, Service
from kb.settings import Settings
from kb.settings_check.rules import value_matches
from kb.store import Store
from kb.store.database import DATABASE
from kb.text.salient_terms import SalientTerms
from kb.text.tokenizer import Tokenizer
from kb.types.entries import Filters

if TYPE_CHECKING:
    from kb.second_reader.asking import SecondReader

STAMP = "opened.json"  # in the state folder
Notify = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What the last opening used: model setting, the model it gave, word lists, facets."""

    setting: str
    model: str
    tokens: str
    facets: tuple[str, ...] = ()


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
    store = Store.open(settings.home / DATABASE)
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
    sync_cases(knowledge, store, say)
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
            close=store.close,
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
    )


def _open_index(
    settings: Settings,
    store: Store,
    embedder: Embedder,
    tokenizer: Tokenizer,
    say: Notify,
    *,
    rebuild: bool,
) -> SearchIndex:
    """The index, built anew when asked to or when the shipped model or word lists changed.

    `SearchIndex.catch_up` repairs a damaged index and refuses one of another kind. Only one case
    is no surprise: this program itself was updated, which the stamp left by the last opening tells.
    """
    folder, lexicon = settings.home / "index", settings.data / "lexicon"
    tokens = fingerprint(tokenizer, lexicon)
    stamp = _stamp(settings, embedder, tokens)
    index = SearchIndex(
        folder, store=store, embedder=embedder, tokenizer=tokenizer, tokens=tokens, notify=say
    )
    if rebuild:
        index.rebuild()
    elif _updated(settings.home / STAMP, stamp) and (folder / "CURRENT").exists():
        say("the shipped model, word lists or filters changed: building the search index anew")
        index.rebuild()
    else:
        index.catch_up()
    _write_stamp(settings.home / STAMP, stamp)
    return index


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
        SearchIndexError: the index is damaged or of another kind; the message names the repair.
    """
    folder, lexicon = settings.home / "index", settings.data / "lexicon"
    if not (folder / "CURRENT").exists():
        return None
    embedder, tokenizer = load_embedder(settings), Tokenizer(lexicon)
    tokens = fingerprint(tokenizer, lexicon)
    if _updated(settings.home / STAMP, _stamp(settings, embedder, tokens)):
        return IndexState(entries=0, outdated=True)
    index = SearchIndex(folder, store=store, embedder=embedder, tokenizer=tokenizer, tokens=tokens)
    manifest = index.snapshot().manifest
    return IndexState(entries=manifest.entries, behind=manifest.seq != store.last_seq())


def _stamp(settings: Settings, embedder: Embedder, tokens: str) -> Stamp:
    """What an opening with these parts leaves behind."""
    return Stamp(
        setting=settings.model, model=embedder.name, tokens=tokens, facets=tuple(sorted(FACETS))
    )


def _updated(path: Path, now: Stamp) -> bool:
    """Whether the last opening was by a program with another embedded model, words or facets."""
    try:
        last = msgspec.json.decode(path.read_bytes(), type=Stamp)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError):
        return now.setting == ""  # an older program left no stamp
    if replace(last, facets=now.facets) == now:
        return last != now
    return last.setting == now.setting == ""


def _write_stamp(path: Path, stamp: Stamp) -> None:
    # without a stamp the next update is refused, not lost
    with contextlib.suppress(OSError):
        write_file(path, msgspec.json.encode(stamp))


def _make_home(home: Path) -> None:
    try:
        make_state_folder(home)
        (home / "cache").mkdir(exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{home} cannot be used: {error.strerror}",
            todo="set TIMEOUT_KB_HOME to a folder you may write to",
        ) from error


def sync_cases(knowledge: Knowledge, store: Store, say: Notify = _silent) -> bool:
    """Bring the shipped cases in the store up to the knowledge; whether anything changed."""
    known = store.digests()
    changed = [case for case in knowledge.cases if known.get(case.source_key) != case.digest]
    current = {case.source_key for case in knowledge.cases}
    stale = (
        [
            entry.id
            for entry in store.iter_entries(Filters(kinds=("case",)))
            if entry.source_key.startswith((CASES_KEY, SITE_CASES_KEY))
            and entry.source_key not in current
        ]
        if set(known) - current
        else []
    )
    if changed:
        say(f"building the knowledge base: {len(changed)} cases")
        store.upsert(changed)
    if stale:
        store.delete(stale)
    return bool(changed or stale)
