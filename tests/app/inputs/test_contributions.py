"""What people add: feedback in the store, logs that are searchable at once, in every process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from app.inputs.contributions import (
    Feedback,
    Resolution,
    add_feedback,
    add_text,
    change_feedback,
    delete,
    delete_feedback,
    find_feedback,
    read_feedback,
    resolve,
)
from ingest import wordlists
from kb.bootstrap import open_service
from kb.errors import InputError, NotFoundError
from kb.incidents.records import IncidentFix
from kb.settings import Settings
from kb.types.entries import CauseClaim, Filters, RankPlace
from kb.types.vocabulary import UNKNOWN

if TYPE_CHECKING:
    from kb.service import Service
    from tests.app.fakes import FakeService

Serve = Callable[[object, Settings], AbstractContextManager[str]]

RESOLUTION = Resolution(cause="gpu-hardware", fix="replaced the card")
# Opens the knowledge base, says so, and answers each query with the ids it finds.
OTHER_PROCESS = """
import sys
from pathlib import Path
from kb.bootstrap import open_service
from kb.settings import Settings
from kb.types.entries import Filters
service = open_service(Settings(home=Path(sys.argv[1])))
print("open", flush=True)
for query in sys.stdin:
    found = service.search(query, filters=Filters(kinds=("incident",)))
    print(*(hit.entry_id for hit in found.hits), flush=True)
"""


def test_feedback_comes_back_as_it_was_said(service: FakeService) -> None:
    """Every field, the face and the time are kept; oldest first."""
    said = Feedback(
        verdict="wrong",
        cause="rank-crash",
        actual=UNKNOWN,
        comment="第 3 个 rank",
        entry="first-case",
        diagnosis="abc",
    )
    before = datetime.now(UTC).replace(microsecond=0)
    first = add_feedback(service, said, source="web")  # type: ignore[arg-type]
    second = add_feedback(
        service,  # type: ignore[arg-type]
        Feedback(verdict="right", cause="rank-crash"),
        source="slack",
    )
    assert read_feedback(service) == (first, second)  # type: ignore[arg-type]
    assert (first.feedback, first.source, second.source) == (said, "web", "slack")
    assert before <= datetime.fromisoformat(first.at) <= datetime.now(UTC)
    row = service.store.records.list_feedback()[-1]
    assert (row.diagnosis_id, row.answered, row.cause) == ("abc", "rank-crash", UNKNOWN)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(Feedback(verdict="right", cause="nobody"), id="cause"),
        pytest.param(Feedback(verdict="wrong", cause="", actual="nobody"), id="actual"),
    ],
)
def test_feedback_about_no_cause_is_refused(service: FakeService, wrong: Feedback) -> None:
    """An id that is no cause is named and nothing is kept."""
    with pytest.raises(InputError, match="'nobody' is not a cause"):
        add_feedback(service, wrong, source="api")  # type: ignore[arg-type]
    assert read_feedback(service) == ()  # type: ignore[arg-type]


def test_feedback_is_changed_and_taken_back(service: FakeService) -> None:
    """By who speaks of what, or by its id; what was taken back is gone, for both."""
    right = Feedback(verdict="right", cause="rank-crash")
    wrong = Feedback(verdict="wrong", cause="rank-crash", actual=UNKNOWN)
    first = add_feedback(service, right, source="web", by="ada log")  # type: ignore[arg-type]
    add_feedback(service, wrong, source="web", by="ada log")  # type: ignore[arg-type]
    add_feedback(service, right, source="web", by="bob log")  # type: ignore[arg-type]
    assert len(read_feedback(service)) == 2  # type: ignore[arg-type]
    found = find_feedback(service, "ada log")  # type: ignore[arg-type]
    assert found is not None
    assert (found.id, found.feedback) == (first.id, wrong)
    changed = change_feedback(service, first.id, right)  # type: ignore[arg-type]
    assert (changed.id, changed.source, changed.feedback) == (first.id, "web", right)
    delete_feedback(service, first.id)  # type: ignore[arg-type]
    assert find_feedback(service, "ada log") is None  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        delete_feedback(service, first.id)  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        change_feedback(service, first.id, right)  # type: ignore[arg-type]
    assert len(read_feedback(service)) == 1  # type: ignore[arg-type]


def test_secrets_in_comments_are_not_kept(service: FakeService) -> None:
    """A comment is redacted before it is stored, and so is what stands in place of an id."""
    said = Feedback(
        verdict="right", cause="", comment="ask me@example.com", diagnosis="password=hunter22secret"
    )
    add_feedback(service, said, source="web")  # type: ignore[arg-type]
    files = b"".join(path.read_bytes() for path in sorted(service.home.iterdir()))
    assert b"ask " in files
    assert b"me@example.com" not in files
    assert b"hunter22secret" not in files
    assert "me@example.com" not in repr(read_feedback(service))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def home(built_home: Callable[[], Path]) -> Path:
    """The state folder of this module."""
    return built_home()


@pytest.fixture(scope="module")
def real(home: Path) -> Iterator[Service]:
    """The real service."""
    service = open_service(Settings(home=home))
    yield service
    service.close()


@pytest.fixture(scope="module")
def other(real: Service, home: Path) -> Iterator[Service]:
    """A second service on the same state folder, as another process has it."""
    service = open_service(Settings(home=home))
    yield service
    service.close()


def make_log(word: str, seq: int) -> str:
    """A log told from others by a word and a sequence number."""
    return (
        f"{word}/trainer.py:7 {word}_barrier is stuck\n"
        "[rank1]: Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) "
        "ran for 600029 ms\n"
    )


def add(service: Service, word: str, seq: int) -> str:
    """Add a log and give its id."""
    (identifier,) = add_text(service, make_log(word, seq), name="job.log").entries
    return identifier


def incidents(service: Service) -> list[str]:
    """Ids of the incidents a search finds."""
    found = service.search("ALLREDUCE timeout", filters=Filters(kinds=("incident",)), limit=100)
    return sorted(hit.entry_id for hit in found.hits)


def test_what_one_process_adds_the_next_search_of_another_finds(
    real: Service, other: Service, home: Path, root: Path
) -> None:
    """Services that were open before find the entry at once, and no more once it is deleted."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", OTHER_PROCESS, str(home)],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"

        def elsewhere() -> list[str]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("ALLREDUCE timeout\n")
            process.stdin.flush()
            return process.stdout.readline().split()

        assert elsewhere() == incidents(other) == []
        first = add(real, "qwyjib", 31)
        assert elsewhere() == incidents(other) == [first]
        delete(real, first)
        assert elsewhere() == incidents(other) == []
        with pytest.raises(NotFoundError):
            other.entry(first)


def test_word_lists_are_compiled_once_for_all_uploads(
    real: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second upload of a process reads no word list."""
    add(real, "firstword", 41)

    def never(_data: Path) -> wordlists.WordLists:
        raise AssertionError("compiled again")

    monkeypatch.setattr(wordlists, "load_word_lists", never)
    identifier = add(real, "secondword", 42)
    assert identifier in incidents(real)


def test_one_log_added_by_many_at_once_is_one_entry(real: Service, other: Service) -> None:
    """Every caller is given the same id and exactly one of them added it."""
    before = real.store.count()
    with ThreadPoolExecutor(6) as pool:
        reports = list(
            pool.map(
                lambda number: add_text(
                    (real, other)[number % 2], make_log("sameword", 51), name="job.log"
                ),
                range(6),
            )
        )
    assert len({report.entries for report in reports}) == 1
    assert sum(report.added for report in reports) == 1
    assert real.store.count() == before + 1


LOST_GPU = """\
2026-11-20 08:00:00 gpu-07:91:221 [0] NCCL INFO comm 0x55 rank 0 nranks 2 cudaDev 0 nvmlDev 0 \
busId 1b000 commId 0x47 - Init COMPLETE
2026-11-20 08:00:00 gpu-07:92:221 [1] NCCL INFO comm 0x55 rank 1 nranks 2 cudaDev 1 nvmlDev 1 \
busId 3d000 commId 0x47 - Init COMPLETE
2026-11-20T09:00:00+00:00 gpu-07 kernel: [1234.5] NVRM: Xid (PCI:0000:3d:00): 79, GPU has fallen \
off the bus.
[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 \
milliseconds before timing out.
"""


def test_an_incident_of_a_log_says_what_stood_out_where_and_when(real: Service) -> None:
    """Culprits with host and GPU, the day by the log's clock, and the cause a diagnosis names."""
    (identifier,) = add_text(real, LOST_GPU, name="job.log").entries
    entry = real.entry(identifier)
    assert entry.culprits == (RankPlace(rank=1, host="gpu-07", gpu="1 (3d:00)"),)
    assert entry.date == "2026-11-20"
    assert entry.causes == (CauseClaim(id="gpu-hardware", status="unverified"),)
    (record,) = (each for each in real.incidents() if each.id == identifier)
    assert (record.cause, record.culprits, record.resolved) == (
        "gpu-hardware",
        entry.culprits,
        False,
    )
    resolve(real, identifier, Resolution(cause="rank-crash", fix="the node was drained"))
    assert [claim.id for claim in real.entry(identifier).causes] == ["rank-crash"]
    (record,) = (each for each in real.incidents() if each.id == identifier)
    assert record.fix == IncidentFix(title="the node was drained")
    assert (record.cause, record.cause_status) == ("rank-crash", "confirmed")


def outcome(work: Callable[[], object]) -> str:
    """What became of a change: done, or the code of its error."""
    try:
        work()
    except NotFoundError as error:
        return error.code
    return "done"


def test_secrets_in_an_outcome_are_not_kept(real: Service) -> None:
    """Neither in the fix, its commands, nor the address it came from."""
    secret = "ghp_" + "a1B2" * 9
    told = Resolution(
        cause="rank-crash",
        fix=f"set the token {secret}",
        url=f"https://ana:hunter22@example.org/a?t={secret}",
        commands=(f"export X={secret}",),
    )
    identifier = add(real, "secretword", 71)
    resolve(real, identifier, told)
    kept = repr(real.entry(identifier))
    assert "example.org" in kept
    assert [word for word in (secret, "hunter22") if word in kept] == []


def test_a_deleted_entry_stays_deleted_whoever_resolves_it_meanwhile(
    real: Service, other: Service
) -> None:
    """Of many deletions one succeeds, and no outcome written at the same time undoes it."""
    for seq in range(61, 65):
        identifier = add(real, "goneword", seq)

        def change(number: int, identifier: str = identifier) -> str:
            service = (real, other)[number % 2]
            if number in (2, 5):
                return outcome(lambda: delete(service, identifier))
            return outcome(lambda: resolve(service, identifier, RESOLUTION))

        with ThreadPoolExecutor(8) as pool:
            outcomes = list(pool.map(change, range(8)))
        assert sorted(outcomes[number] for number in (2, 5)) == ["done", "not-found"]
        for service in (real, other):
            with pytest.raises(NotFoundError):
                service.entry(identifier)


def test_lists_lead_from_page_to_page_and_have_a_tag_until_something_changes(
    real: Service, home: Path, serve: Serve
) -> None:
    """Following `next` gives every entry once; the tag holds until an entry is added."""
    settings = Settings(home=home)
    with serve(real, settings) as address, httpx.Client(base_url=address, timeout=60) as client:
        url, seen = "/v1/cases?limit=100&backend=nccl", []
        while url:
            page = client.get(url)
            seen += [item["id"] for item in page.json()["items"]]
            url = page.links.get("next", {}).get("url", "")
        wanted = real.entries(filters=Filters(kinds=("case",), backends=("nccl",)), limit=1000)
        assert seen == [entry.id for entry in wanted]
        assert len(seen) > 100
        first = client.get("/v1/entries?kind=incident")
        tag = {"if-none-match": first.headers["etag"]}
        assert client.get("/v1/entries?kind=incident", headers=tag).status_code == 304
        identifier = add(real, "tagword", 71)
        after = client.get("/v1/entries?kind=incident", headers=tag)
        assert after.status_code == 200
        new = {item["id"] for item in after.json()["items"]}
        assert new - {item["id"] for item in first.json()["items"]} == {identifier}


def test_the_tag_of_an_entry_changes_when_it_is_resolved(
    real: Service, home: Path, serve: Serve
) -> None:
    """The source is the same, the entry is not: who had it before gets the outcome."""
    identifier = add(real, "resolvedtag", 81)
    with serve(real, Settings(home=home)) as address, httpx.Client(base_url=address) as client:
        place = f"/v1/entries/{identifier}"
        tag = {"if-none-match": client.get(place).headers["etag"]}
        assert client.get(place, headers=tag).status_code == 304
        resolve(real, identifier, RESOLUTION)
        changed = client.get(place, headers=tag)
        assert (changed.status_code, changed.json()["resolved"]) == (200, True)
