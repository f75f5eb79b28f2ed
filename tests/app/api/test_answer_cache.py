"""Answers given lately: what they are told apart by, how many stay, that they never grow stale."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import anyio
import httpx
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.api.answer_cache import OVERHEAD_BYTES, AnswerCache, CachedAnswer, answer_key
from app.server.observability import new_metrics
from kb.bootstrap import open_service
from kb.service import Service
from kb.settings import Settings
from kb.types.answer import Diagnosis
from tests.app.fakes import FakeService
from tests.app.samples import LOG

Serve = Callable[[object, Settings], contextlib.AbstractContextManager[str]]
TYPED = {"Content-Type": "text/plain"}
TOKEN = "hf_" + "Zk9" * 12


def answer_of(size: int) -> CachedAnswer:
    """An answer whose body has so many bytes."""
    return CachedAnswer(body=b"x" * size, language="en", status="diagnosed", cause="oom")


def counts(address: str) -> dict[str, float]:
    """How many answers were made and how many given again."""
    families = text_string_to_metric_families(httpx.get(f"{address}/metrics").text)
    found = next(family for family in families if family.name == "timeout_kb_answers")
    return {
        sample.labels["source"]: sample.value
        for sample in found.samples
        if sample.name.endswith("_total")
    }


def test_no_more_than_the_limit_stays_and_the_longest_unused_goes_first() -> None:
    """Five answers in room for three: the two used last and the newest stay."""

    async def run() -> None:
        answers = AnswerCache(new_metrics(), limit=3 * (100 + OVERHEAD_BYTES))

        async def make() -> CachedAnswer:
            return answer_of(100)

        for key in (b"a", b"b", b"c"):
            assert (await answers.get(key, make))[1] is False
        assert (await answers.get(b"a", make))[1] is True
        await answers.get(b"d", make)
        known = {key: (await answers.get(key, make))[1] for key in (b"a", b"c", b"d")}
        assert known == {b"a": True, b"c": True, b"d": True}
        assert (await answers.get(b"b", make))[1] is False
        assert answers.size == 3 * (100 + OVERHEAD_BYTES)

    anyio.run(run)


def test_an_answer_larger_than_the_room_is_given_but_not_kept() -> None:
    """It would push out all others for nothing."""

    async def run() -> None:
        answers = AnswerCache(new_metrics(), limit=OVERHEAD_BYTES + 10)

        async def make() -> CachedAnswer:
            return answer_of(11)

        assert await answers.get(b"a", make) == (answer_of(11), False)
        assert (await answers.get(b"a", make))[1] is False
        assert answers.size == 0

    anyio.run(run)


def test_the_same_question_at_once_is_worked_on_once() -> None:
    """Forty askers, one maker; a maker that fails leaves the next asker to try."""
    made = 0

    async def run() -> None:
        answers = AnswerCache(new_metrics())
        results: list[bool | str] = []

        async def make() -> CachedAnswer:
            nonlocal made
            made += 1
            number = made
            await anyio.lowlevel.checkpoint()
            if number == 1:
                raise ValueError("the first one fails")
            return answer_of(5)

        async def ask() -> None:
            try:
                results.append((await answers.get(b"a", make))[1])
            except ValueError as error:
                results.append(str(error))

        async with anyio.create_task_group() as group:
            for _ in range(40):
                group.start_soon(ask)
        assert sorted(map(str, results)) == ["False", *["True"] * 38, "the first one fails"]

    anyio.run(run)
    assert made == 2


@pytest.mark.parametrize(
    "other",
    [
        {"body": b"log "},
        {"version": "2"},
        {"options": (True, "application/json")},
        {"options": (False, "text/plain")},
    ],
    ids=["another body", "another version", "another form", "another type"],
)
def test_what_an_answer_depends_on_is_in_its_key(other: dict[str, object]) -> None:
    """Any difference gives another key; none gives the same."""
    same = {"body": b"log", "version": "1", "options": (False, "application/json")}
    assert answer_key(**same) == answer_key(**same)  # type: ignore[arg-type]
    assert answer_key(**(same | other)) != answer_key(**same)  # type: ignore[arg-type]


def test_a_log_sent_again_is_answered_the_same_and_counted(
    shared_service: FakeService, serve: Serve, tmp_path: Path
) -> None:
    """Same bytes, same answer, from the store; other options, forms and `no-cache` are new work."""
    shared_service.reset()
    with serve(shared_service, Settings(home=tmp_path)) as address:
        path = f"{address}/v1/diagnose"

        def post(suffix: str = "", **headers: str) -> httpx.Response:
            return httpx.post(path + suffix, content=LOG, headers=TYPED | headers)

        first, second = post(), post()
        assert first.status_code == second.status_code == 200
        assert first.content == second.content
        assert first.headers["content-language"] == second.headers["content-language"]
        told = [answer.headers["cache-status"] for answer in (first, second)]
        assert told == ["timeout-kb; fwd=miss", "timeout-kb; hit"]
        assert counts(address) == {"made": 1, "kept": 1}
        assert post("?top=1").headers["cache-status"] == "timeout-kb; fwd=miss"
        assert post(Accept="text/markdown").text.startswith("#")
        assert "cache-status" not in post(**{"Cache-Control": "no-cache"}).headers
        assert counts(address) == {"made": 3, "kept": 1}
        body = httpx.post(path, json={"text": LOG})
        assert body.headers["cache-status"] == "timeout-kb; fwd=miss"
        assert httpx.post(path, json={"text": LOG}).content == body.content


def test_a_failure_is_not_kept(shared_service: FakeService, serve: Serve, tmp_path: Path) -> None:
    """An empty log is refused each time, and the next good one is answered."""
    shared_service.reset()
    with serve(shared_service, Settings(home=tmp_path)) as address:
        for _ in range(2):
            assert httpx.post(f"{address}/v1/diagnose", content=b" ", headers=TYPED).is_error
        assert counts(address) == {}
        assert httpx.post(f"{address}/v1/diagnose", content=LOG, headers=TYPED).is_success


@pytest.fixture(scope="module")
def real(built_home: Callable[[], Path]) -> Service:
    """The real service."""
    return open_service(Settings(home=built_home()))


def test_a_new_entry_makes_answers_anew(real: Service, serve: Serve) -> None:
    """What was kept before the knowledge base changed is not given after it."""
    case = real.knowledge.cases[0]
    log = f"{case.title.en}\n" + "\n".join(case.signature)
    with serve(real, Settings(home=real.settings.home)) as address:

        def ask() -> httpx.Response:
            return httpx.post(f"{address}/v1/diagnose", content=log, headers=TYPED)

        before = ask()
        assert ask().headers["cache-status"] == "timeout-kb; hit"
        version = real.version()
        assert real.delete([case.id]) == 1
        assert real.version() != version
        after = ask()
        assert after.headers["cache-status"] == "timeout-kb; fwd=miss"
        cases = [
            [item.id for item in msgspec.json.decode(answer.content, type=Diagnosis).cases]
            for answer in (before, after)
        ]
        assert case.id in cases[0]
        assert case.id not in cases[1]
        real.apply([case])
        assert ask().headers["cache-status"] == "timeout-kb; fwd=miss"


def test_nothing_kept_holds_a_secret(real: Service, serve: Serve) -> None:
    """A token in a line that is quoted stands redacted in the answer, and so in what is kept."""
    log = f"[rank1]: RuntimeError: NCCL timed out, HF_TOKEN={TOKEN}\n" * 3
    with serve(real, Settings(home=real.settings.home)) as address:
        answers = [
            httpx.post(f"{address}/v1/diagnose", content=log, headers=TYPED) for _ in range(2)
        ]
    assert answers[1].headers["cache-status"] == "timeout-kb; hit"
    assert TOKEN not in answers[1].text
    assert "<redacted:" in answers[1].text
