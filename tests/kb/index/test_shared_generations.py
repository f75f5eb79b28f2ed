"""Servers that share what they built: publish, fetch, and what must not be fetched."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kb.bootstrap import open_service
from kb.index import publisher as publisher_module
from kb.index.generation_places import generation_place
from kb.index.live import SearchIndex
from kb.index.publisher import CHUNKS, LAG_S, Publisher
from kb.index.shared_generations import KEEP, LATEST, SharedGenerations
from kb.index.snapshot import MANIFEST, read_manifest, write_manifest
from kb.settings import Settings
from kb.store import Store
from tests.kb.fakes import SplitTokenizer, WordEmbedder, make_entry
from tests.kb.index.following import ROOT, assert_follows, entries
from tests.postgres import PostgresServer


class Server:
    """One of several servers: a home of its own, a store and a folder or bucket that it shares."""

    def __init__(
        self, place: Path | str, home: Path, folder: Path | str, model: str = "words@1"
    ) -> None:
        self.store = Store.open(place)
        self.embedder = WordEmbedder(model)
        self.notes: list[str] = []
        self.index = SearchIndex(
            home / "index",
            store=self.store,
            embedder=self.embedder,
            tokenizer=SplitTokenizer(),
            generations=generation_place(str(folder)),
            notify=self.notes.append,
        )
        assert self.index.shared is not None
        self.shared = self.index.shared
        self.publisher = Publisher(self.store, self.index, self.shared)

    def publish(self, now_s: float = 0.0) -> bool:
        """Build what is missing and publish it where that is due."""
        self.index.catch_up()
        return self.publisher.publish_due(now_s)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that the servers share."""
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


@pytest.fixture
def new_server(
    postgres: PostgresServer, tmp_path: Path, folder: Path
) -> Iterator[Callable[..., Server]]:
    """Makes servers on one PostgreSQL database, each with a home of its own."""
    address, made = postgres.address(), list[Server]()

    def make(**options: str) -> Server:
        made.append(Server(address, tmp_path / f"home{len(made)}", folder, **options))
        return made[-1]

    yield make
    for server in made:
        server.store.close()


@pytest.fixture
def first(new_server: Callable[..., Server]) -> Server:
    """A server that built an index of twenty entries and published it."""
    server = new_server()
    server.store.upsert(entries(0, 20))  # type: ignore[arg-type]
    assert server.publish()
    return server


def generations(folder: Path) -> list[Path]:
    """Folders of generations, whole ones and others."""
    return sorted(folder.glob("*/gen-*"))


def refuse_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on nobody may build."""

    def build(*_: object) -> None:
        raise AssertionError("an index was built")

    monkeypatch.setattr("kb.index.snapshot.build", build)


def damage(path: Path) -> None:
    """Turn one bit; the size stays."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_the_second_fetches_what_the_first_built(
    first: Server, new_server: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It builds nothing, makes no vector, and finds what the store holds; later changes too."""
    refuse_builds(monkeypatch)
    second = new_server()
    assert second.index.catch_up()
    assert second.embedder.encoded == 0
    assert_follows(second.index, second.store)
    first.store.upsert([make_entry("late", "alpha w99")])
    assert second.index.catch_up()
    assert second.embedder.encoded == 1
    assert_follows(second.index, second.store)


def test_what_changed_since_is_added_to_what_is_fetched(
    first: Server, new_server: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sequence number of the generation is where the second goes on."""
    first.store.upsert(entries(18, 23))  # type: ignore[arg-type]
    first.store.delete(["e003"])
    refuse_builds(monkeypatch)
    second = new_server()
    second.index.catch_up()
    assert second.embedder.encoded == 6
    assert_follows(second.index, second.store)


def test_who_is_far_behind_fetches(
    first: Server, new_server: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From that many chunks on, and only where the shared generation has later changes."""
    monkeypatch.setattr("kb.index.live.FETCH_CHUNKS", 8)
    near, far = new_server(), new_server()
    for server in (near, far):
        server.index.catch_up()
    base = _base(near)
    first.store.upsert(entries(20, 23))  # type: ignore[arg-type]
    first.index.rebuild()
    assert first.publish()
    rebuilt = _base(first)
    refuse_builds(monkeypatch)
    near.index.catch_up()  # six chunks
    first.store.upsert(entries(23, 24))  # type: ignore[arg-type]
    far.index.catch_up()  # eight
    assert (_base(near), _base(far)) == (base, rebuilt)
    assert base != rebuilt
    first.store.upsert(entries(24, 28))  # type: ignore[arg-type]
    for server in (near, far):
        server.index.catch_up()  # eight again and ten, and nothing later is shared
        assert_follows(server.index, server.store)


def _base(server: Server) -> tuple[int, int]:
    """Size and checksum of the file that a build makes and changes leave as it is."""
    manifest = server.index.published().manifest
    return manifest.files[manifest.base]


@pytest.mark.parametrize("kind", ["bit", "short", "missing", "link", "manifest", "path", "pipe"])
def test_a_damaged_generation_is_passed_over(
    first: Server,
    new_server: Callable[..., Server],
    folder: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    kind: str,
) -> None:
    """With one line of the log; the server builds, and what it has is right."""
    (generation,) = generations(folder)
    manifest = read_manifest(generation)
    victim = generation / manifest.base
    if kind == "bit":
        damage(victim)
    elif kind == "short":
        victim.write_bytes(victim.read_bytes()[:-1])
    elif kind == "missing":
        victim.unlink()
    elif kind == "link":
        victim.rename(tmp_path / "elsewhere")
        victim.symlink_to(tmp_path / "elsewhere")
    elif kind == "manifest":
        damage(generation / MANIFEST)
    elif kind == "path":
        files = manifest.files | {"../../planted": (1, 0)}
        write_manifest(generation, replace(manifest, files=files))
    else:
        victim.unlink()
        os.mkfifo(victim)
    second = new_server()
    second.index.catch_up()
    lines = [one for one in caplog.messages if one.startswith("generation_not_fetched")]
    assert len(lines) == 1
    assert_follows(second.index, second.store)
    assert not list(tmp_path.rglob("planted"))


def test_the_earlier_serves_where_the_latest_is_damaged(
    first: Server,
    new_server: Callable[..., Server],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two are there for that, never more."""
    for number in range(20, 24):
        first.store.upsert(entries(number, number + 1))  # type: ignore[arg-type]
        first.index.rebuild()
        assert first.publish()
        assert len(generations(folder)) == KEEP
    name = next(folder.glob(f"*/{LATEST}")).read_text().strip()
    latest = next(folder.glob(f"*/{name}"))
    damage(latest / read_manifest(latest).base)
    refuse_builds(monkeypatch)
    second = new_server()
    second.index.catch_up()
    assert second.embedder.encoded == 0
    assert_follows(second.index, second.store)


def test_half_written_and_foreign_ones_are_no_generations(
    first: Server, new_server: Callable[..., Server], folder: Path, tmp_path: Path
) -> None:
    """One without its last rename, one of another model, one of another store."""
    (generation,) = generations(folder)
    other_model = new_server(model="words@2")
    other_model.index.catch_up()
    assert other_model.embedder.encoded > 0
    other_store = Server(tmp_path / "kb.sqlite3", tmp_path / "other", folder)
    other_store.store.upsert(entries(5, 9))  # type: ignore[arg-type]
    assert other_store.publish()
    # as if somebody had put them into each other's places
    foreign = next(path for path in generations(folder) if path != generation)
    shutil.rmtree(generation)
    shutil.copytree(foreign, generation)
    second = new_server()
    second.index.catch_up()
    assert_follows(second.index, second.store)
    generation.rename(generation.with_name(f"{generation.name}.building"))
    third = new_server()
    third.index.catch_up()
    assert_follows(third.index, third.store)
    assert_follows(other_store.index, other_store.store)


def test_one_of_two_publishes(
    first: Server, new_server: Callable[..., Server], folder: Path
) -> None:
    """At once: the other leaves it, and nothing half is left."""
    servers = [first, *(new_server() for _ in range(3))]
    first.store.upsert([make_entry("x", *(["w"] * CHUNKS))])
    for server in servers:
        server.index.catch_up()
    start, done = threading.Barrier(len(servers)), []

    def publish(server: Server) -> None:
        start.wait()
        done.append(server.publisher.publish_due(0.0))

    threads = [threading.Thread(target=publish, args=(server,)) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done.count(True) == 1
    assert not list(folder.glob("*/*.building"))
    latest = first.shared.latest()
    assert latest is not None
    assert latest.seq == first.store.last_seq()


def test_while_one_publishes_no_other_does(
    first: Server, new_server: Callable[..., Server]
) -> None:
    """The lock lies in the store, so it holds between machines; with it nothing is published."""
    second = new_server()
    second.index.catch_up()
    with first.store.lock(f"locks/publish-{second.shared.name}"):
        assert not second.shared.publish(second.index.published(), stopped=threading.Event())
    assert second.shared.publish(second.index.published(), stopped=threading.Event())


def test_what_is_being_fetched_stays(
    first: Server, new_server: Callable[..., Server], folder: Path
) -> None:
    """More than two may be there while somebody fetches; the next publication deletes them."""
    second = new_server()
    name = next(iter(folder.iterdir())).name
    stopped = threading.Event()
    with second.store.lock(f"locks/fetch-{name}", shared=True):
        for _ in range(3):
            assert first.shared.publish(first.index.published(), stopped=stopped)
        assert len(generations(folder)) == 4
    assert first.shared.publish(first.index.published(), stopped=stopped)
    assert len(generations(folder)) == KEEP


def test_when_it_is_due(first: Server) -> None:
    """After many chunks, some time after any change, after a build; never without a change."""
    assert not first.publish(0.0)
    first.store.upsert([make_entry("few", *(["w"] * (CHUNKS - 1)))])
    assert not first.publish(1.0)
    assert not first.publish(LAG_S + 0.5)
    assert first.publish(LAG_S + 1.0)
    first.store.upsert([make_entry("many", *(["w"] * CHUNKS))])
    assert first.publish(LAG_S + 2.0)
    first.index.rebuild()
    assert not first.publish(LAG_S + 3.0)
    first.store.upsert([make_entry("one", "w")])
    first.index.rebuild()
    assert first.publish(LAG_S + 4.0)


@pytest.mark.parametrize("kind", ["gone", "no folder"])
def test_without_the_folder_all_goes_on(
    first: Server,
    new_server: Callable[..., Server],
    folder: Path,
    caplog: pytest.LogCaptureFixture,
    kind: str,
) -> None:
    """One line however often it is tried; the folder is not made, for it may not be mounted."""
    shutil.rmtree(folder)
    if kind == "no folder":
        folder.write_text("a file")
    for second in range(3):
        assert not first.publisher.publish_due(float(second))
    assert [one.split(":")[0] for one in caplog.messages] == ["generation_not_published"]
    assert not folder.is_dir()
    caplog.clear()
    second_server = new_server()
    second_server.index.catch_up()
    assert_follows(second_server.index, second_server.store)
    folder.unlink(missing_ok=True)
    folder.mkdir()
    assert first.publisher.publish_due(9.0)


def test_a_folder_that_refuses_is_read(
    first: Server,
    new_server: Callable[..., Server],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Read-only for a server, or full: it fetches, and says once that it cannot publish."""

    def refuse(path: Path, *_: object, **__: object) -> None:
        if folder in path.parents:
            raise OSError(30, "Read-only file system", str(path))
        made(path, *_, **__)

    second = new_server()
    made = Path.mkdir
    monkeypatch.setattr(Path, "mkdir", refuse)
    second.index.catch_up()
    assert second.embedder.encoded == 0
    second.store.upsert([make_entry("x", *(["w"] * CHUNKS))])
    second.index.catch_up()
    assert not second.publisher.publish_due(0.0)
    assert not second.publisher.publish_due(1.0)
    assert [one.split(":")[0] for one in caplog.messages] == ["generation_not_published"]
    assert len(generations(folder)) == 1


PUBLISH = """
import os, sys, threading
from pathlib import Path
sys.path.insert(0, {root!r})
from kb.index import generation_places, shared_generations
from kb.index.shared_generations import LATEST
from tests.kb.index.test_shared_generations import Server
server = Server({place!r}, Path({home!r}), Path({folder!r}))
server.index.catch_up()
def stop(*arguments):
    print("here", flush=True)
    threading.Event().wait()
if {step!r} == "copied":
    shared_generations.encode_manifest = stop
elif {step!r} == "written":
    generation_places.publish_folder = stop
else:
    server.shared._place.put = stop
server.shared.publish(server.index.published(), stopped=threading.Event())
"""


@pytest.mark.parametrize("step", ["copied", "written", "complete"])
def test_a_killed_publisher_leaves_the_earlier(
    postgres: PostgresServer,
    tmp_path: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    """After kill -9 the pointer names the one before, which is whole; the next one clears up."""
    address = postgres.address()
    one = Server(address, tmp_path / "one", folder)
    one.store.upsert(entries(0, 9))  # type: ignore[arg-type]
    assert one.publish()
    before = one.shared.latest()
    script = PUBLISH.format(
        root=str(ROOT), place=address, home=str(tmp_path / "killed"), folder=str(folder), step=step
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "here\n"
        child.send_signal(signal.SIGKILL)
    assert one.shared.latest() == before
    name = next(iter(folder.iterdir())).name
    with one.store.lock(f"locks/publish-{name}"):
        pass  # the server has noticed that its owner is gone
    with monkeypatch.context() as patched:
        refuse_builds(patched)
        two = Server(address, tmp_path / "two", folder)
        two.index.catch_up()
    assert_follows(two.index, two.store)
    one.store.upsert([make_entry("x", *(["w"] * CHUNKS))])
    assert one.publish()
    assert not list(folder.glob("*/*.building"))
    for server in (one, two):
        server.store.close()


def test_the_thread_publishes_and_ends(
    new_server: Callable[..., Server], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """In the background: what a started publisher has copied another server can fetch."""
    monkeypatch.setattr(publisher_module, "FIRST_S", 0.0)
    server, done = new_server(), threading.Event()
    server.store.upsert(entries(0, 5))  # type: ignore[arg-type]
    server.index.catch_up()
    publish = server.shared.publish

    def and_tell(*arguments: object, **options: object) -> bool:
        try:
            return publish(*arguments, **options)  # type: ignore[arg-type]
        finally:
            done.set()

    monkeypatch.setattr(server.shared, "publish", and_tell)
    server.publisher.start()
    assert done.wait(60)
    server.publisher.close()
    assert not server.publisher._thread.is_alive()
    assert len(generations(folder)) == 1


def test_services_share_what_they_build(
    postgres: PostgresServer, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting reaches it: of two services on one database the second builds nothing."""
    monkeypatch.setattr(publisher_module, "FIRST_S", 0.0)
    done, publish = threading.Event(), SharedGenerations.publish

    def and_tell(*arguments: object, **options: object) -> bool:
        published = publish(*arguments, **options)  # type: ignore[arg-type]
        done.set()
        return published

    monkeypatch.setattr(SharedGenerations, "publish", and_tell)
    settings = Settings(home=tmp_path / "one", store=postgres.address(), generations=str(folder))
    one = open_service(settings)
    assert done.wait(60)
    refuse_builds(monkeypatch)
    two = open_service(replace(settings, home=tmp_path / "two"))
    for service in (one, two):
        service.close()
    manifests = [
        next((tmp_path / home).glob(f"index/*/gen-*/{MANIFEST}")) for home in ("one", "two")
    ]
    assert len({path.read_bytes() for path in manifests}) == 1
