"""Two releases on one home, as while servers are updated one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kb import bootstrap
from kb.bootstrap import open_service, sync_cases
from kb.errors import NotFoundError, SearchIndexError
from kb.index import live
from kb.service import Service
from kb.settings import Settings
from kb.types.entries import Entry, Filters
from tests.kb.fakes import make_entry
from tests.shipped_part import shipped_cases, shipped_part

THREADS = Filters(kinds=("thread",))
OLD, NEW = "1.2.3", "1.10.0"


@dataclass(frozen=True)
class TwoReleases:
    """The older one, opened first, and the newer, which has other words and a case fewer."""

    old: Service
    new: Service
    gone: Entry
    said: list[str]


def _data(shipped: Path, folder: Path, cases: slice) -> Path:
    shipped_part(folder, shipped, shipped_cases(shipped)[cases], without=["lexicon"])
    (folder / "lexicon").mkdir()
    for words in (shipped / "lexicon").iterdir():
        (folder / "lexicon" / words.name).write_bytes(words.read_bytes())
    return folder


@pytest.fixture(scope="module")
def releases(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoReleases]:
    """Both open on one home."""
    folder = tmp_path_factory.mktemp("releases")
    home = folder / "home"
    older = _data(data_dir, folder / "older", slice(0, 4))
    newer = _data(data_dir, folder / "newer", slice(1, 4))
    with (newer / "lexicon" / "plain.txt").open("a") as words:
        words.write("fluxcapacitor\n")
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bootstrap, "this_release", lambda: OLD)
        old = open_service(Settings(home=home, data=older))
        patch.setattr(bootstrap, "this_release", lambda: NEW)
        new = open_service(Settings(home=home, data=newer), notify=said.append)
    yield TwoReleases(old, new, old.knowledge.cases[0], said)
    old.close()
    new.close()


def _found(service: Service, words: str) -> list[str]:
    return [hit.entry_id for hit in service.search(words, filters=THREADS).hits]


def _followed(service: Service) -> None:
    service.health()
    for thread in live.threading.enumerate():
        if thread.name == "index-follower":
            thread.join()


def test_what_either_acknowledges_both_find(releases: TwoReleases) -> None:
    """The adding one at once, the other once its index has followed, which health tells."""
    for number, (writer, reader) in enumerate(
        ((releases.old, releases.new), (releases.new, releases.old))
    ):
        words = f"quenched zirconium{number}"
        assert writer.apply([make_entry(f"t{number}", words)])["added"] == 1
        assert _found(writer, words)[0] == f"t{number}"
        _followed(reader)
        assert _found(reader, words)[0] == f"t{number}"
        assert (reader.health().index_behind, reader.health().ready) == (0, True)
    assert "building a search index" in releases.said[-1]


def test_health_tells_what_is_not_found_yet(
    releases: TwoReleases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other goes on answering from what it has, and says how far behind it is and why."""

    def refuse(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    _followed(releases.old)
    releases.new.apply([make_entry("waiting", "quenched hafnium")])
    monkeypatch.setattr(live, "publish_folder", refuse)
    _followed(releases.old)
    health = releases.old.health()
    assert (health.ready, health.index_behind) == (True, 1)
    assert "No space left" in health.index_failure
    assert releases.old.diagnose_text("NCCL watchdog timeout on rank 3").status


def test_the_older_leaves_the_cases_of_the_newer(releases: TwoReleases) -> None:
    """Started again beside it, it neither deletes nor writes back; its own knowledge serves it."""
    old, new, gone = releases.old, releases.new, releases.gone
    with pytest.raises(NotFoundError):
        new.entry(gone.id)
    before = new.store.digests()
    assert not sync_cases(old.knowledge, new.store, release=OLD)
    assert new.store.digests() == before
    assert sync_cases(old.knowledge, new.store, release="2.0")
    assert new.entry(gone.id).id == gone.id
    assert not sync_cases(new.knowledge, new.store, release=NEW)


def test_what_cannot_be_found_is_not_added(small: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the index cannot be written an addition is refused and nothing of it is stored."""
    small.apply([make_entry("kept", "as it was")])

    def refuse(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(live, "publish_folder", refuse)
        with pytest.raises(SearchIndexError, match="No space left") as refused:
            small.apply([make_entry("kept", "changed"), make_entry("added", "new")])
        assert refused.value.http_status == 503
        merged = make_entry("whole", "both", kind="incident", merged=("kept",))
        with pytest.raises(SearchIndexError):
            small.merge(merged, ["kept"])
        assert small.delete(["no-such"]) == 0
    assert small.entry("kept").chunks[0].text == "as it was"
    for entry_id in ("added", "whole"):
        with pytest.raises(NotFoundError):
            small.entry(entry_id)
    assert small.apply([make_entry("later", "unlike")]) == {
        "added": 1,
        "updated": 0,
        "unchanged": 0,
    }
    assert "kept" in _found(small, "as it was")
    assert small.delete(["kept", "later"]) == 2
