"""Servers that share what they built in a bucket, on an S3 server of this machine."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kb.bootstrap import open_service
from kb.errors import SettingsError
from kb.index import publisher as publisher_module
from kb.index.generation_places import generation_place
from kb.index.publisher import CHUNKS
from kb.index.shared_generations import KEEP, LATEST, SharedGenerations
from kb.index.snapshot import MANIFEST
from kb.settings import Settings, load_settings
from tests.kb.fakes import make_entry
from tests.kb.index.following import assert_follows, entries
from tests.kb.index.test_shared_generations import Server, refuse_builds
from tests.postgres import PostgresServer

pytest.importorskip("obstore", reason="needs the extra s3")
moto = pytest.importorskip("moto.server", reason="needs moto, a server of S3")


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    """A server of S3 on this machine, spoken to by everybody who reads the environment."""
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server.start()
    with pytest.MonkeyPatch.context() as environment:
        host, port = server.get_host_and_port()
        for name, text in {
            "ACCESS_KEY_ID": "key",
            "SECRET_ACCESS_KEY": "secret",
            "REGION": "us-east-1",
            "ENDPOINT_URL": f"http://{host}:{port}",
        }.items():
            environment.setenv(f"AWS_{name}", text)
        yield server
        server.stop()


@pytest.fixture
def client(s3: Any) -> Any:
    """The usual client, and a bucket without objects."""
    import boto3

    client = boto3.client("s3", endpoint_url="http://{}:{}".format(*s3.get_host_and_port()))
    client.create_bucket(Bucket="shared")
    for each in client.list_objects_v2(Bucket="shared").get("Contents", ()):
        client.delete_object(Bucket="shared", Key=each["Key"])
    return client


@pytest.fixture
def new_server(
    postgres: PostgresServer, tmp_path: Path, client: object
) -> Iterator[Callable[[], Server]]:
    """Makes servers on one PostgreSQL database, each with a home of its own."""
    address, made = postgres.address(), list[Server]()

    def make() -> Server:
        made.append(Server(address, tmp_path / f"home{len(made)}", "s3://shared/some/prefix"))
        return made[-1]

    yield make
    for server in made:
        server.store.close()


def objects(client: Any) -> list[str]:
    """Keys of all objects, below the prefix."""
    found = client.list_objects_v2(Bucket="shared").get("Contents", ())
    assert all(each["Key"].startswith("some/prefix/") for each in found)
    return sorted(each["Key"].removeprefix("some/prefix/") for each in found)


def generations(client: Any) -> set[str]:
    """Generations that have a manifest."""
    return {key.split("/")[1] for key in objects(client) if key.endswith(f"/{MANIFEST}")}


def test_one_builds_and_the_others_fetch(
    new_server: Callable[[], Server], client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No vector is made twice; two generations stay; what changed since is added."""
    first = new_server()
    first.store.upsert(entries(0, 20))  # type: ignore[arg-type]
    assert first.publish()
    for number in range(20, 23):
        first.store.upsert(entries(number, number + 1))  # type: ignore[arg-type]
        first.index.rebuild()
        assert first.publish()
        assert len(generations(client)) == KEEP
    first.store.upsert([make_entry("late", "alpha w99")])
    refuse_builds(monkeypatch)
    second = new_server()
    assert second.index.catch_up()
    assert second.embedder.encoded == 1
    assert_follows(second.index, second.store)
    assert {key.split("/")[0] for key in objects(client)} == {second.shared.name}


@pytest.mark.parametrize("kind", ["bit", "short", "missing", "manifest", "latest"])
def test_damage_is_seen_and_the_earlier_serves(
    new_server: Callable[[], Server],
    client: Any,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """Checked byte by byte, with a line of the log; nobody builds while one is whole."""
    first = new_server()
    first.store.upsert(entries(0, 20))  # type: ignore[arg-type]
    assert first.publish()
    first.store.upsert(entries(20, 21))  # type: ignore[arg-type]
    first.index.rebuild()
    assert first.publish()
    manifest = first.index.published().manifest
    name = client.get_object(Bucket="shared", Key=f"some/prefix/{first.shared.name}/{LATEST}")
    latest = f"some/prefix/{first.shared.name}/{name['Body'].read().decode().strip()}"
    key = f"{latest}/{MANIFEST if kind == 'manifest' else manifest.base}"
    if kind == "latest":
        key = f"some/prefix/{first.shared.name}/{LATEST}"
    content = bytearray(client.get_object(Bucket="shared", Key=key)["Body"].read())
    if kind == "missing":
        client.delete_object(Bucket="shared", Key=key)
    else:
        content[len(content) // 2] ^= 1
        body = bytes(content[:-1] if kind == "short" else content)
        client.put_object(Bucket="shared", Key=key, Body=body)
    refuse_builds(monkeypatch)
    second = new_server()
    second.index.catch_up()
    lines = [one for one in caplog.messages if one.startswith("generation_not_fetched")]
    assert len(lines) == (kind != "latest")
    assert_follows(second.index, second.store)


def test_one_cut_off_is_no_generation(
    new_server: Callable[[], Server], client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its manifest nobody fetches it, and the next publication deletes it."""
    first = new_server()
    first.store.upsert(entries(0, 9))  # type: ignore[arg-type]
    first.index.catch_up()
    place, stopped = first.shared._place, threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(type(place), "delete", lambda *_: None)  # as one that was killed

        def stop(*_: object) -> bytes:
            raise KeyboardInterrupt

        patched.setattr("kb.index.shared_generations.encode_manifest", stop)
        with pytest.raises(KeyboardInterrupt):
            first.shared.publish(first.index.published(), stopped=stopped)
    assert objects(client)
    assert first.shared.latest() is None
    stopped.set()
    assert not first.shared.publish(first.index.published(), stopped=stopped)
    assert objects(client) == []  # the end of a server leaves nothing behind
    assert first.publish()
    (generation,) = generations(client)
    assert {key.split("/")[1] for key in objects(client)} == {generation, LATEST}


def test_without_the_bucket_all_goes_on(
    new_server: Callable[[], Server], client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """One line of the log however often it is tried; once it is there it is used."""
    client.delete_bucket(Bucket="shared")
    first = new_server()
    first.store.upsert([make_entry("x", *(["w"] * CHUNKS))])
    for second in range(2):
        assert not first.publish(float(second))
    assert_follows(first.index, first.store)
    lines = [one.split(":")[0] for one in caplog.messages]
    assert lines == ["generations_not_read", "generation_not_published"]
    client.create_bucket(Bucket="shared")
    assert first.publish(9.0)


def test_a_bucket_is_named_as_it_is(
    postgres: PostgresServer, tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting reaches the bucket; an address that names none is refused with what to do."""
    monkeypatch.setattr(publisher_module, "FIRST_S", 0.0)
    done, publish = threading.Event(), SharedGenerations.publish

    def and_tell(*arguments: object, **options: object) -> bool:
        published = publish(*arguments, **options)  # type: ignore[arg-type]
        done.set()
        return published

    monkeypatch.setattr(SharedGenerations, "publish", and_tell)
    environ = {
        "TIMEOUT_KB_STORE": postgres.address(),
        "TIMEOUT_KB_GENERATIONS": "s3://shared/some/prefix",
        "TIMEOUT_KB_HOME": str(tmp_path / "one"),
    }
    settings = load_settings(environ)
    assert settings.generations == "s3://shared/some/prefix"
    assert Settings().generations == ""
    service = open_service(settings)
    assert done.wait(60)
    service.close()
    assert len(generations(client)) == 1
    with pytest.raises(SettingsError, match="s3://") as refused:
        generation_place("s3://")
    assert refused.value.todo
