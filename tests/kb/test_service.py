"""The service: one object, real parts, the contract of the Diagnosis."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import yaml

import kb
from kb.bootstrap import open_service, sync_cases
from kb.errors import NotFoundError, StoreError
from kb.knowledge.cases import CASES_KEY
from kb.service import Service
from kb.settings import Settings
from kb.types.answer import Diagnosis
from kb.types.entries import Filters
from kb.types.vocabulary import DIAGNOSIS_SCHEMA

UNNAMED = yaml.safe_load((Path(__file__).parent / "unnamed_timeouts.yaml").read_text("utf-8"))
OOM_LOG = """\
[rank2]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 336.00 MiB.
[rank0]:[E ProcessGroupNCCL.cpp:563] [Rank 0] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=25165824, NumelOut=25165824, \
Timeout(ms)=600000) ran for 600068 milliseconds before timing out.
"""


@pytest.fixture(scope="module")
def service(built_home: Callable[[], Path]) -> Iterator[Service]:
    """The real service over the shipped data."""
    opened = open_service(Settings(home=built_home()))
    yield opened
    opened.close()


@pytest.mark.parametrize("name", kb.__all__)
def test_the_api_has_its_names(name: str) -> None:
    """`from kb import Diagnosis` and the others work."""
    assert getattr(kb, name).__name__ == name


def test_the_first_error_decides(service: Service) -> None:
    """An out-of-memory traceback on one rank before the timeouts is the cause."""
    diagnosis = service.diagnose_text(OOM_LOG)
    assert (diagnosis.schema, diagnosis.status) == (DIAGNOSIS_SCHEMA, "diagnosed")
    assert diagnosis.causes[0].id == "rank-crash"
    first = diagnosis.incident.first_error
    assert first is not None
    assert (first.rank, first.line) == (2, 1)
    assert [culprit.rank for culprit in diagnosis.incident.culprit_ranks] == [2]
    assert (diagnosis.incident.op, diagnosis.incident.seq) == ("ALLREDUCE", 812)
    assert diagnosis.incident.timeout_ms == 600_000


def test_probabilities_of_all_causes_and_unknown_stay_within_one(service: Service) -> None:
    """However many causes are asked for, they and `unknown` sum to at most 1."""
    diagnosis = service.diagnose_text(OOM_LOG, top=19)
    total = sum(cause.probability for cause in diagnosis.causes) + diagnosis.unknown_probability
    assert total == pytest.approx(1.0, abs=0.002)
    assert [c.probability for c in diagnosis.causes] == sorted(
        (c.probability for c in diagnosis.causes), reverse=True
    )


@pytest.mark.parametrize(
    "text", [OOM_LOG, "训练卡住，zero2 可以，zero3 卡住，混合图文数据"], ids=["en", "zh"]
)
def test_every_quote_is_a_literal_piece_of_the_input_or_of_a_case(
    text: str, service: Service
) -> None:
    """Evidence quotes the input, or a named case."""
    diagnosis = service.diagnose_text(text)
    for cause in diagnosis.causes:
        for evidence in cause.evidence:
            if evidence.kind == "case":
                title = service.entry(evidence.source).title
                assert evidence.quote in (title.zh, title.en)
            else:
                assert evidence.quote in text


def test_the_language_follows_the_input_or_the_wish(service: Service) -> None:
    """Chinese words get a Chinese answer; the caller may ask for another."""
    zh = service.diagnose_text("训练到一半卡住了，NCCL 超时")
    assert (zh.language, service.diagnose_text(OOM_LOG).language) == ("zh", "en")
    wished = service.diagnose_text(OOM_LOG, language="zh")
    assert wished.language == "zh"
    assert [c.id for c in wished.causes] == [c.id for c in service.diagnose_text(OOM_LOG).causes]


@pytest.mark.parametrize(
    "text",
    ["Collecting numpy\nSuccessfully installed numpy-2.0", "hello world", "x = 1"],
    ids=["pip", "greeting", "code"],
)
def test_what_is_no_timeout_is_not_called_one(text: str, service: Service) -> None:
    """No causes, no cases, exit without a claim."""
    diagnosis = service.diagnose_text(text)
    assert (diagnosis.status, diagnosis.causes, diagnosis.cases) == ("no_timeout", (), ())


@pytest.mark.parametrize("report", UNNAMED, ids=lambda report: report["id"])
def test_a_report_without_a_known_word_is_no_dead_end(
    report: dict[str, str], service: Service
) -> None:
    """Trouble of a run gets causes, a question and what to bring; anything else does not."""
    diagnosis = service.diagnose_text(report["text"])
    if report["about"] == "run":
        assert diagnosis.status != "no_timeout"
        assert diagnosis.causes
        assert diagnosis.next
        assert diagnosis.status == "diagnosed" or diagnosis.best_check is not None
    else:
        assert (diagnosis.status, diagnosis.causes) == ("no_timeout", ())


def test_a_path_in_a_chinese_sentence_hides_nothing(service: Service) -> None:
    """Chinese has no spaces: the words around a path still report a hang."""
    diagnosis = service.diagnose_text("在昇腾上用/data/ckpt路径保存的时候多机训练卡死了")
    assert diagnosis.status == "diagnosed"
    assert diagnosis.causes[0].id == "checkpoint-io"


def test_a_bare_hang_is_unknown_and_says_what_to_collect(service: Service) -> None:
    """Without evidence the answer is `unknown` with next steps, not a guess."""
    diagnosis = service.diagnose_text("it hangs")
    assert diagnosis.status == "unknown"
    assert diagnosis.next
    assert diagnosis.causes[0].probability < 0.25


def test_secrets_do_not_come_back(service: Service) -> None:
    """A token pasted with a log stands nowhere in the answer."""
    token = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ012345"
    answer = service.diagnose_text(f"HF_TOKEN={token} torchrun train.py hangs, NCCL timeout\n")
    assert token not in msgspec.json.encode(answer).decode()
    assert answer.redactions >= 1


def test_paths_stream_and_text_agree(service: Service, tmp_path: Path) -> None:
    """The same bytes give the same diagnosis by every way in."""
    log = tmp_path / "run.log"
    log.write_text(OOM_LOG)
    pieces = [OOM_LOG.encode()[i : i + 7] for i in range(0, len(OOM_LOG), 7)]
    ways = [
        service.diagnose_text(OOM_LOG),
        service.answer(service.read_paths([log])),
        service.answer(service.read_stream(iter(pieces))),
    ]

    def essence(answer: Diagnosis) -> tuple[object, ...]:
        return answer.status, [(c.id, c.probability) for c in answer.causes], answer.summary

    assert essence(ways[0]) == essence(ways[1]) == essence(ways[2])


def test_threads_get_the_answers_one_thread_gets(service: Service) -> None:
    """Eight threads at once: no failure, the same causes."""
    texts = [OOM_LOG, "gloo connectFullMesh failed with remote=[127.0.0.1]:1234", "训练卡住"]
    expected = [[c.id for c in service.diagnose_text(text).causes] for text in texts]
    wrong: list[object] = []

    def work() -> None:
        for text, ids in zip(texts, expected, strict=True):
            got = [c.id for c in service.diagnose_text(text).causes]
            if got != ids:
                wrong.append((text, got))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_entry_added_at_run_time_is_found_and_gone_when_deleted(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Added, searchable at once, deleted, not found any more; who searched before goes on."""
    case = service.knowledge.cases[0]
    section = replace(case.sections[0], text="the flux capacitor quenched on rank 88")
    entry = replace(
        case,
        id="writeup-0123456789abcdef",
        kind="writeup",
        source_key="test",
        digest="d",
        sections=(section,),
        chunks=(
            replace(
                case.chunks[0],
                id="writeup-0123456789abcdef#0",
                entry_id="writeup-0123456789abcdef",
                text=section.text,
                language="en",
            ),
        ),
    )
    assert service.apply([entry])["added"] == 1
    found = service.search("flux capacitor quenched", filters=Filters(kinds=("writeup",)))
    assert [hit.entry_id for hit in found.hits] == [entry.id]
    assert service.delete([entry.id]) == 1
    assert service.search("flux capacitor", filters=Filters(kinds=("writeup",))).hits == ()
    assert service.entries_of(found) == {}
    with monkeypatch.context() as patched:
        patched.setattr(service, "similar", lambda *_, **__: found)
        assert service.diagnose_text(OOM_LOG).causes[0].id == "rank-crash"
    with pytest.raises(NotFoundError):
        service.entry(entry.id)


def test_health_counts_what_is_there(service: Service) -> None:
    """Ready, with as many cases as the knowledge has."""
    health = service.health()
    assert health.ready
    assert health.cases == len(service.knowledge.cases) == health.entries


def test_the_first_opening_builds_and_says_so_the_second_is_silent(tmp_path: Path) -> None:
    """One line the first time, none the second."""
    settings = Settings(home=tmp_path / "home")
    said: list[str] = []
    open_service(settings, notify=said.append).close()
    assert len(said) == 1
    assert "building the knowledge base" in said[0]
    open_service(settings, notify=said.append).close()
    assert len(said) == 1


def test_cases_that_left_the_data_leave_the_store(tmp_path: Path) -> None:
    """The store follows the shipped cases, and leaves a user's entries alone."""
    opened = open_service(Settings(home=tmp_path / "home"))
    kept = replace(opened.knowledge, cases=opened.knowledge.cases[:2])
    assert sync_cases(kept, opened.store)
    left = [entry.source_key for entry in opened.store.iter_entries()]
    assert sorted(left) == sorted(case.source_key for case in kept.cases)
    assert all(key.startswith(CASES_KEY) for key in left)
    assert not sync_cases(kept, opened.store)
    opened.close()


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file where the folder should be: the message names it and the setting."""
    blocked = tmp_path / "home"
    blocked.write_text("")
    with pytest.raises(StoreError) as caught:
        open_service(Settings(home=blocked))
    assert "TIMEOUT_KB_HOME" in caught.value.todo


def test_a_damaged_index_is_made_anew(tmp_path: Path) -> None:
    """Cut-off index files: one line says so, and the answers are the same as before."""
    settings = Settings(home=tmp_path / "home")
    first = open_service(settings)
    before = [hit.entry_id for hit in first.search("tokenizer takes 30 minutes").hits]
    first.close()
    for path in (tmp_path / "home" / "index").rglob("*"):
        if path.is_file() and path.stat().st_size > 200:
            path.write_bytes(path.read_bytes()[:100])
    said: list[str] = []
    mended = open_service(settings, notify=said.append)
    assert len(said) == 1
    assert [hit.entry_id for hit in mended.search("tokenizer takes 30 minutes").hits] == before
    mended.close()


def test_a_new_state_folder_is_its_owners_alone(tmp_path: Path) -> None:
    """Logs are private; a folder that is there already keeps the rights it has."""
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    for home in (tmp_path / "new" / "home", shared):
        open_service(Settings(home=home)).close()
    assert (tmp_path / "new" / "home").stat().st_mode & 0o777 == 0o700
    assert shared.stat().st_mode & 0o777 == 0o755
