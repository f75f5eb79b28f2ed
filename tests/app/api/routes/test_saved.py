"""Kept diagnoses: stored on request in every form, read again in either language."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import msgspec
import pytest

from app.api.auth import add_key, keys_path
from kb.bootstrap import open_service
from kb.chat.chat import Chat
from kb.errors import NotFoundError, StoreError
from kb.saved import DAY_S, load_diagnosis, save_diagnosis
from kb.settings import Settings
from kb.types.answer import Diagnosis
from kb.types.vocabulary import Language
from tests.stored import stored_rows

if TYPE_CHECKING:
    from kb.service import Service

Serve = Callable[[object, Settings], AbstractContextManager[str]]

WATCHDOG = (
    "[rank1]:[E ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=14217, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
    "600029 milliseconds before timing out.\n"
)
LOG = (
    "export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n" + WATCHDOG
)
PAGE = "https://kb.example.org/timeouts"


@pytest.fixture(scope="module")
def real(built_home: Callable[[], Path]) -> Iterator[Service]:
    """The real service, whose page has an address."""
    service = open_service(Settings(home=built_home(), public_url=f"{PAGE}/"))
    yield service
    service.close()


@pytest.fixture(scope="module")
def api(real: Service, serve: Serve) -> Iterator[httpx.Client]:
    """A client of a server with the real service."""
    with (
        serve(real, real.settings) as address,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        yield client


def form(client: httpx.Client, log: str) -> httpx.Response:
    """Post a log as a file of a form, which is read in a folder of its own."""
    files = [("file", ("rank0.log", log.encode())), ("text", (None, "it hangs"))]
    return client.post("/v1/diagnose?keep=true", files=files)


FORMS: dict[str, Callable[[httpx.Client, str], httpx.Response]] = {
    "json": lambda client, log: client.post("/v1/diagnose?keep=true", json={"text": log}),
    "raw": lambda client, log: client.put("/v1/diagnose?keep=true", content=log.encode()),
    "chunked": lambda client, log: client.put(
        "/v1/diagnose?keep=true", content=iter([log[:70].encode(), log[70:].encode()])
    ),
    "form": form,
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_kept_and_comes_back_as_it_was_answered(
    api: httpx.Client, real: Service, name: str
) -> None:
    """Location leads to the same answer, Link to the page; secrets and folders are not kept."""
    posted = FORMS[name](api, LOG)
    assert posted.status_code == 200, posted.text
    place = posted.headers["location"]
    identifier = place.removeprefix("/v1/diagnoses/")
    assert posted.headers["link"] == f'<{PAGE}/?d={identifier}>; rel="alternate"; type="text/html"'
    answer = msgspec.json.decode(posted.content, type=Diagnosis)
    again = msgspec.json.decode(api.get(place).content, type=Diagnosis)
    same = ("status", "language", "summary", "incident", "causes", "cases", "next", "warnings")
    assert [getattr(again, field) for field in same] == [getattr(answer, field) for field in same]
    body = real.store.records.get_diagnosis(identifier).body
    assert b"hf_abcdefghijklmnop" not in body
    assert b"/timeout-kb-" not in body  # folders forms are read in


def test_any_address_of_the_page_makes_a_sound_header(real: Service, serve: Serve) -> None:
    """Signs that must not stand in a header are written as percent codes."""
    settings = replace(real.settings, public_url="https://例.example.org/a b\r\nX-Odd: 1/")
    with serve(real, settings) as address:
        posted = httpx.post(f"{address}/v1/diagnose?keep=true", json={"text": LOG}, timeout=60)
    assert posted.status_code == 200, posted.text
    assert "x-odd" not in posted.headers
    link = posted.headers["link"]
    assert link.startswith("<https://%E4%BE%8B.example.org/a%20b%0D%0AX-Odd:%201/?d=")


def test_without_asking_nothing_is_kept(api: httpx.Client, real: Service) -> None:
    """A plain diagnosis leaves no trace in the store and names no place."""
    before = stored_rows(real.store, "SELECT id FROM diagnoses")
    plain = api.put("/v1/diagnose", content=LOG.encode())
    assert "location" not in plain.headers
    assert stored_rows(real.store, "SELECT id FROM diagnoses") == before


def test_both_languages_and_all_forms_are_read_from_one_link(api: httpx.Client) -> None:
    """`lang` and Accept choose; without them it is JSON in the language of the log."""
    zh_log = "训练到一半就卡住了，保存检查点的时候报错，下面是日志\n" + WATCHDOG
    place = api.post("/v1/diagnose?keep=true&lang=en", json={"text": zh_log}).headers["location"]
    assert api.get(place).json()["language"] == "zh"
    english = api.get(place, params={"lang": "en"}).json()
    assert english["language"] == "en"
    text = api.get(place, params={"lang": "en"}, headers={"accept": "text/plain"})
    assert text.headers["content-type"].startswith("text/plain")
    assert text.text.splitlines()[0] == english["headline"]
    markdown = api.get(place, headers={"accept": "text/markdown"})
    assert markdown.headers["content-type"].startswith("text/markdown")
    assert markdown.headers["content-language"] == "zh"
    assert api.get(place, headers={"accept": "image/png"}).status_code == 406


def substance(answer: Diagnosis) -> tuple[object, ...]:
    """What an answer says in any language."""
    causes = [(item.id, item.probability, item.band, item.cases) for item in answer.causes]
    weights = [[(part.line, part.weight) for part in item.evidence] for item in answer.causes]
    cases = [(case.id, case.score) for case in answer.cases]
    warnings = [(item.setting, item.verdict, item.line) for item in answer.setting_notes]
    return answer.status, causes, weights, answer.unknown_probability, cases, warnings


def test_both_languages_of_a_link_are_one_verdict(api: httpx.Client) -> None:
    """Torch's version given with the log counts in either language, and in the first answer."""
    body = {"text": f"NCCL_ASYNC_ERROR_HANDLING=1\n{LOG}", "torch": "2.8", "lang": "zh"}
    posted = api.post("/v1/diagnose?keep=true", json=body)
    place = posted.headers["location"]
    told = msgspec.json.decode(posted.content, type=Diagnosis)
    links = [
        msgspec.json.decode(api.get(place, params={"lang": lang}).content, type=Diagnosis)
        for lang in ("zh", "en")
    ]
    assert [item.language for item in links] == ["zh", "en"]
    assert [item.verdict for item in told.setting_notes] == ["deprecated_alias"]
    assert [substance(item) for item in links] == [substance(told)] * 2


@pytest.mark.parametrize("spoken", ["zh", "en"])
def test_a_chat_is_saved_as_it_stands(real: Service, spoken: Language) -> None:
    """After remarks and an answer to a check both languages say what the chat said last."""
    chat = Chat(real)
    log = chat.say(WATCHDOG, language=spoken)
    assert log.question is not None
    chat.say("1", conversation=log.conversation, language=spoken)
    remark = "dmesg shows Xid 79 on that node, torch 2.8.0"
    reply = chat.say(remark, conversation=log.conversation, language=spoken)
    assert reply.diagnosis is not None
    assert log.diagnosis is not None
    assert substance(reply.diagnosis) != substance(log.diagnosis)
    verdict = chat.verdict(log.conversation)
    assert verdict is not None
    saved = load_diagnosis(real, save_diagnosis(real, verdict).id)
    assert (saved.zh.language, saved.en.language) == ("zh", "en")
    assert substance(saved.zh) == substance(saved.en) == substance(reply.diagnosis)


def test_what_has_not_changed_is_not_sent_again(api: httpx.Client) -> None:
    """The ETag of one form and language answers 304 for itself only."""
    place = api.post("/v1/diagnose?keep=true", json={"text": LOG}).headers["location"]
    first = api.get(place)
    again = api.get(place, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    other = api.get(place, params={"lang": "zh"}, headers={"if-none-match": first.headers["etag"]})
    assert other.status_code == 200


def test_an_unknown_link_is_a_problem_with_a_next_step(api: httpx.Client) -> None:
    """404 says what to do."""
    response = api.get("/v1/diagnoses/nobody-kept-this")
    assert response.status_code == 404
    assert response.json()["type"] == "urn:timeout-kb:problem:not-found"
    assert response.json()["todo"] == "Check the link, or diagnose the log again."


def test_one_log_kept_twice_has_two_links_nobody_guesses(real: Service) -> None:
    """Ids are 96 random bits, not made of the log."""
    verdict = real.judge(real.read_text(LOG))
    first, second = save_diagnosis(real, verdict), save_diagnosis(real, verdict)
    assert len({first.id, second.id}) == 2
    assert len(first.id) == 16
    assert load_diagnosis(real, first.id) == first


def put_back(service: Service, identifier: str, days: float) -> None:
    """Make a kept diagnosis older than it is."""
    record = service.store.records.get_diagnosis(identifier)
    service.store.records.put_diagnosis(
        identifier, record.body, created_s=record.created_s - days * DAY_S
    )


def test_after_its_days_a_kept_diagnosis_is_gone(built_home: Callable[[], Path]) -> None:
    """Its link says so, and the next one that is kept takes it off the disk; no younger one."""
    with contextlib.closing(open_service(Settings(home=built_home(), kept_days=7))) as service:
        reading = service.read_text(LOG)
        old, young = (save_diagnosis(service, service.judge(reading)).id for _ in range(2))
        put_back(service, old, 7.01)
        put_back(service, young, 6.99)
        assert load_diagnosis(service, young).id == young
        with pytest.raises(NotFoundError, match="has expired — diagnose the log again"):
            load_diagnosis(service, old)
        new = save_diagnosis(service, service.judge(reading)).id
        held = stored_rows(service.store, "SELECT id FROM diagnoses")
    assert {identifier for (identifier,) in held} == {young, new}


def test_zero_days_are_for_ever(built_home: Callable[[], Path]) -> None:
    """Where a site wants to keep all, nothing ever expires."""
    with contextlib.closing(open_service(Settings(home=built_home(), kept_days=0))) as service:
        reading = service.read_text(LOG)
        old = save_diagnosis(service, service.judge(reading)).id
        put_back(service, old, 10_000)
        save_diagnosis(service, service.judge(reading))
        assert load_diagnosis(service, old).id == old


def test_a_kept_diagnosis_of_another_shape_is_told(real: Service) -> None:
    """What cannot be read names the diagnosis and says what to do."""
    real.store.records.put_diagnosis("odd", b'{"format": 99}', created_s=time.time())
    with pytest.raises(StoreError, match="diagnose the log again"):
        load_diagnosis(real, "odd")


def test_a_deleted_diagnosis_is_gone(api: httpx.Client) -> None:
    """After DELETE the link leads nowhere, and deleting again says so."""
    place = api.put("/v1/diagnose?keep=true", content=LOG.encode()).headers["Location"]
    assert api.get(place).status_code == 200
    assert api.delete(place).status_code == 204
    assert (api.get(place).status_code, api.delete(place).status_code) == (404, 404)


def test_what_is_kept_counts_for_its_key(service: Service, serve: Serve, tmp_path: Path) -> None:
    """Diagnoses are those of the key they came with; /metrics shows the size of all."""
    path = keys_path(settings := replace(service.settings, home=tmp_path / "keys"))
    ann, bob = add_key(path, "ann", "read"), add_key(path, "bob", "read")
    with serve(service, settings) as address, httpx.Client(base_url=address) as client:
        for key, times in ((ann, 2), (bob, 1)):
            headers = {"x-api-key": key}
            for _ in range(times):
                client.put("/v1/diagnose?keep=true", content=LOG, headers=headers)
        numbers = client.get("/metrics", headers={"x-api-key": ann}).text
    query = "SELECT owner, kind, count(*) FROM kept_sizes WHERE owner <> '' GROUP BY owner, kind"
    assert stored_rows(service.store, query) == [
        ("ann", "diagnoses", 2),
        ("bob", "diagnoses", 1),
    ]
    assert re.search(r'^timeout_kb_kept_bytes\{kind="diagnoses"\} [1-9]', numbers, re.MULTILINE)
    assert "timeout_kb_kept_bytes_limit" in numbers
