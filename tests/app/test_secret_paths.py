"""No secret handed in through any field stands afterwards in the state folder or an answer."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from kb.bootstrap import open_service
from kb.settings import Settings
from tests.app.face_inputs import INPUTS

if TYPE_CHECKING:
    from kb.service import Service

Serve = Callable[[object, Settings], AbstractContextManager[str]]
FORMS = ("hf_{}", "密码：{}")


class Canaries:
    """Secrets, each handed in at one place: which of them is found tells the way it took."""

    def __init__(self) -> None:
        self._rng = random.Random(7)
        self.places: dict[str, str] = {}

    def __call__(self, place: str, form: str = "hf_{}") -> str:
        """A new secret in its form, remembered with the place it goes to."""
        value = "".join(self._rng.choices(string.ascii_letters + string.digits, k=20)) + "aQ7zQ8"
        self.places[value] = place
        return form.format(value)

    def found(self, data: bytes) -> list[str]:
        """The places whose secret stands in the data."""
        return [place for value, place in self.places.items() if value.encode() in data]


@pytest.fixture(scope="module")
def canaries() -> Canaries:
    """Those of this module."""
    return Canaries()


@pytest.fixture(scope="module")
def folder(built_home: Callable[[], Path]) -> Path:
    """A state folder of the module's own."""
    return built_home()


@pytest.fixture(scope="module")
def after(folder: Path, serve: Serve, canaries: Canaries) -> Iterator[tuple[Service, bytes]]:
    """A service after secrets came in through every field, and all that was answered."""
    settings = Settings(home=folder)
    service = open_service(settings)
    answers: list[bytes] = []
    with serve(service, settings) as address, httpx.Client(base_url=address, timeout=60) as client:
        for response in hand_in(client, canaries):
            answers += [response.content, repr(dict(response.headers)).encode()]
        answers.append(client.get("/metrics").content)
    yield service, b"\n".join(answers)
    service.close()


def hand_in(client: httpx.Client, secret: Canaries) -> Iterator[httpx.Response]:
    """Secrets in every field of the API that takes text, and what is answered."""
    for number, form in enumerate(FORMS):
        log = f"{INPUTS['oom']}{secret(f'log {form}', form)}\n[rank1]: {secret('line', form)}\n"
        yield client.put("/v1/diagnose?keep=true", content=log)
        name = f"run{number}_{secret('file name', form)}.log".replace("：", "=")
        files = {"file": (name, log + secret("uploaded log", form))}
        form_answer = client.post("/v1/diagnose?keep=true", files=files)
        yield form_answer
        yield client.post("/v1/entries", files={"file": (f"e{name}", f"{log}{number}")})
        damaged = {"dump": (secret("dump name", form) + ".bin", b"\x00\x01")}
        yield client.post("/v1/diagnose", files={**damaged, "text": (None, log)})
        said = {"message": f"{log}\n{secret('chat message', form)}"}
        talk = client.post("/v1/chat", json=said, headers={"accept": "application/json"})
        yield talk
        yield client.get(f"/v1/chat/{talk.json()['conversation']}")
        more = {"message": secret("question", form), "conversation": talk.json()["conversation"]}
        yield client.post("/v1/chat", json=more, headers={"accept": "application/json"})
        yield from change_entry(client, secret, form, log)
        note = secret("comment", form)
        yield client.post(
            "/v1/feedback", json={"verdict": "wrong", "cause": "cuda-oom", "comment": note}
        )
        yield client.post("/v1/lint", json={"text": f"NCCL_DEBUG=INFO\n{secret('lint', form)}"})
    yield from wrong_requests(client, secret)


def change_entry(
    client: httpx.Client, secret: Canaries, form: str, log: str
) -> Iterator[httpx.Response]:
    """An entry added, resolved, edited, listed, found and exported."""
    text = f"# {secret('title', form)}\n\n{log}{secret('write-up', form)}\n"
    added = client.post("/v1/entries", json={"text": text, "name": secret("entry name") + ".md"})
    yield added
    incident = client.post("/v1/entries", json={"text": f"{log} again", "name": "again.log"})
    yield incident
    (identifier,) = incident.json()["ids"]
    outcome = {
        "own_cause": secret("own cause", form),
        "fix": secret("fix", form),
        "commands": [secret("command", form)],
        "url": f"https://bob:{secret('address', '{}')}@wiki.corp/x",
    }
    yield client.post(f"/v1/entries/{identifier}/resolve", json=outcome)
    changes = {"title": secret("new title", form), "labels": [secret("label")]}
    yield client.patch(f"/v1/entries/{identifier}", json=changes)
    yield client.get(f"/v1/entries/{identifier}")
    yield client.get(f"/v1/entries/{identifier}/export")
    yield client.get("/v1/search", params={"q": "out of memory timeout"})
    yield client.get("/v1/incidents")


def wrong_requests(client: httpx.Client, secret: Canaries) -> Iterator[httpx.Response]:
    """Requests that are refused, with a secret where the refusal may quote it."""
    yield client.get(f"/v1/entries/{secret('id')}")
    yield client.get(f"/v1/{secret('path')}")
    yield client.get("/v1/causes", params={secret("parameter"): "1"})
    yield client.get("/v1/search", params={"q": "x", "limit": secret("number")})
    yield client.post("/v1/search", json={"q": "x", secret("field"): "y"})
    yield client.post("/v1/lint", json={"text": "x", "lang": secret("choice")})
    yield client.post("/v1/diagnose", files={secret("form field"): ("a.log", "x")})
    yield client.put("/v1/diagnose", headers={"accept": secret("accept")}, content="x")
    yield client.post("/v1/chat", content=secret("body"), headers={"content-type": secret("type")})
    broken = json.dumps({"text": secret("broken")})[:-1]
    yield client.post("/v1/lint", content=broken, headers={"content-type": "application/json"})
    yield client.get("/v1/causes", headers={"x-request-id": secret("request id")})


def test_nothing_is_stored(after: tuple[Service, bytes], folder: Path, canaries: Canaries) -> None:
    """No file of the state folder holds a secret: store, index, caches and kept diagnoses."""
    found = {
        (str(path.relative_to(folder)), place)
        for path in folder.rglob("*")
        if path.is_file()
        for place in canaries.found(path.read_bytes())
    }
    assert found == set()
    assert len(canaries.places) > 40


def test_nothing_is_answered(after: tuple[Service, bytes], canaries: Canaries) -> None:
    """No answer, refusal or number repeats a secret, to whoever sent it or to others."""
    assert canaries.found(after[1]) == []
