"""The composition root: builds the real parts. Nothing else in `kb` opens a resource."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from kb.diagnose.engine import Engine
from kb.diagnose.model import load_weights
from kb.embed import load_embedder
from kb.embed.base import Embedder
from kb.errors import StoreError
from kb.index.live import SearchIndex
from kb.index.manifest import fingerprint
from kb.knowledge import Knowledge, load_knowledge
from kb.logs.reader import LogReader
from kb.search import Searcher
from kb.service import Parts, Service
from kb.settings import Settings
from kb.store import Store
from kb.text import Tokenizer
from kb.types import Filters

CASES_KEY = "data/cases/"  # source keys of the shipped cases begin with it
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
    knowledge = load_knowledge(settings.data, cache=settings.home / "cache")
    store = Store.open(settings.home / "kb.sqlite3")
    try:
        return _assemble(settings, knowledge, store, say, rebuild=rebuild)
    except BaseException:
        store.close()
        raise


def _assemble(
    settings: Settings, knowledge: Knowledge, store: Store, say: Notify, *, rebuild: bool
) -> Service:
    sync_cases(knowledge, store, say)
    embedder = load_embedder(settings)
    tokenizer = Tokenizer(settings.data / "lexicon")
    index = _open_index(settings, store, embedder, tokenizer, rebuild=rebuild)
    searcher = Searcher(store, index, embedder, tokenizer)
    return Service(
        Parts(
            settings=settings,
            knowledge=knowledge,
            store=store,
            searcher=searcher,
            catch_up=index.catch_up,
            engine=Engine(knowledge, load_weights(settings.data / "weights.json")),
            make_reader=partial(
                LogReader,
                knowledge.patterns,
                cache=settings.home / "cache",
                max_line=settings.max_line,
            ),
            close=store.close,
        )
    )


def _open_index(
    settings: Settings, store: Store, embedder: Embedder, tokenizer: Tokenizer, *, rebuild: bool
) -> SearchIndex:
    folder, lexicon = settings.home / "index", settings.data / "lexicon"
    if not rebuild:
        return SearchIndex.open(
            folder, store=store, embedder=embedder, tokenizer=tokenizer, lexicon=lexicon
        )
    index = SearchIndex(
        folder,
        store=store,
        embedder=embedder,
        tokenizer=tokenizer,
        tokens=fingerprint(tokenizer, lexicon),
    )
    index.rebuild()
    return index


def _make_home(home: Path) -> None:
    try:
        (home / "cache").mkdir(parents=True, exist_ok=True)
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
            if entry.source_key.startswith(CASES_KEY) and entry.source_key not in current
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
