"""An incident's life: added, resolved then or later, found again, edited, merged, exported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from app.inputs.contributions import (
    Changes,
    Resolution,
    add_reading,
    add_text,
    delete,
    edit,
    merge,
    resolve,
    restore,
)
from app.render.incident_markdown import render_incidents
from kb.bootstrap import open_service
from kb.chat.chat import Chat
from kb.diagnose.verdict import SIMILAR_SOUGHT, search_filters
from kb.errors import InputError, NotFoundError
from kb.knowledge.labels import Words
from kb.saved import load_diagnosis, save_diagnosis
from kb.service import LANGUAGES
from kb.settings import Settings
from kb.store import Store
from kb.types.entries import CauseClaim, Entry, Hit, RankPlace
from kb.types.knowledge import Bilingual
from tests.stored import stored_rows

if TYPE_CHECKING:
    from kb.service import Service

FIX = "cleared the scratch disk of node7 and moved the checkpoints"
DISK_FULL = Resolution(cause="checkpoint-io", fix=FIX, commands=("df -h /scratch",))
SECRET = "ghp_" + "a1B2" * 9


def log(step: int, rank: int = 3) -> str:
    """A job of which one rank's disk is full while the others wait."""
    return (
        f"saving the checkpoint of step {step}\n"
        f"[rank{rank}]: OSError: [Errno 28] No space left on device: '/scratch/ckpt-{step}'\n"
        "[rank0]:[E ProcessGroupNCCL.cpp:563] [Rank 0] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum={step}, OpType=ALLREDUCE, NumelIn=7340032, NumelOut=7340032, "
        "Timeout(ms)=600000) ran for 600068 milliseconds before timing out.\n"
    )


@pytest.fixture
def home(built_home: Callable[[], Path]) -> Path:
    """A state folder that holds the shipped cases and nothing else."""
    return built_home()


@pytest.fixture
def service(home: Path) -> Iterator[Service]:
    """The real service over it."""
    opened = open_service(Settings(home=home))
    yield opened
    opened.close()


def add(service: Service, text: str) -> str:
    """Add a log and give its id."""
    (identifier,) = add_text(service, text, name="job-4711.log").entries
    return identifier


def names(service: Service, text: str, entry_id: str) -> bool:
    """Whether an entry stands anywhere in the answer."""
    return entry_id in msgspec.json.encode(service.diagnose_text(text)).decode()


def voters(service: Service, text: str) -> list[str]:
    """Ids of the entries that are weighed."""
    return [hit.entry_id for hit in service.judge(service.read_text(text)).hits]


def test_without_a_teams_entries_cases_alone_are_weighed(service: Service) -> None:
    """The hits are those of a search for cases, to the last digit; an open incident is none."""

    def hits() -> tuple[Hit, ...]:
        query = service.engine.query_text(service.read_text(log(900)))
        found = service.similar(service.read_text(log(900)))
        alone = service.searcher.search(query, filters=search_filters(), limit=SIMILAR_SOUGHT)
        assert (found.hits, found.facets) == (alone.hits, alone.facets)
        return found.hits

    assert len(hits()) == SIMILAR_SOUGHT
    add(service, log(812))
    assert {hit.kind for hit in hits()} == {"case"}


def test_a_resolved_incident_is_met_again(service: Service) -> None:
    """Open it says nothing; resolved it stands first, votes, and is the team's own everywhere."""
    identifier = add(service, log(812))
    assert not names(service, log(900), identifier)
    before = service.judge(service.read_text(log(900, rank=5))).votes
    resolve(service, identifier, DISK_FULL, by="ada")

    diagnosis = service.diagnose_text(log(900, rank=5), language="en")
    met = diagnosis.met_before
    assert met is not None
    assert (met.entry, met.kind, met.cause) == (identifier, "incident", "checkpoint-io")
    assert (met.fix, met.command) == (FIX, "df -h /scratch")
    assert met.when == service.entry(identifier).resolved_on[:10] != ""
    assert met.why[0].startswith("same error: ")
    assert (diagnosis.cases[0].id, diagnosis.cases[0].kind) == (identifier, "incident")
    reasons = [item.reason for item in diagnosis.causes[0].evidence if item.source == identifier]
    assert f"your team's similar incident {identifier} had this cause" in reasons
    after = service.judge(service.read_text(log(900, rank=5))).votes
    assert after["checkpoint-io"] > before["checkpoint-io"]

    delete(service, identifier)
    assert not names(service, log(900), identifier)


@pytest.mark.parametrize(
    ("now", "fix", "commands", "is_first"),
    [
        pytest.param("", FIX, (), True, id="no framework named"),
        pytest.param(
            "Our Megatron-LM job hangs while it saves.\n\n",
            FIX,
            (),
            True,
            id="another framework's log",
        ),
        pytest.param(
            "Our Megatron-LM job hangs while it saves.\n\n",
            "moved the checkpoints of DeepSpeed to node7",
            (),
            False,
            id="a fix for another framework",
        ),
        pytest.param(
            "Our Megatron-LM job hangs while it saves.\n\n",
            FIX,
            ("deepspeed --num_gpus 8 train.py",),
            False,
            id="a command for another framework",
        ),
    ],
)
def test_what_helped_the_team_is_first_whatever_framework_is_named(
    service: Service, now: str, fix: str, commands: tuple[str, ...], is_first: bool
) -> None:
    """The same incident is the same whatever its log calls the framework; fixes name their own."""
    identifier = add(service, f"deepspeed.initialize: DeepSpeedEngine, zero stage 3\n{log(812)}")
    resolve(service, identifier, Resolution(cause="checkpoint-io", fix=fix, commands=commands))
    answer = service.diagnose_text(f"{now}{log(900)}", language="en")
    assert answer.met_before is not None
    assert answer.met_before.entry == identifier
    assert answer.causes[0].id == "checkpoint-io"
    assert answer.first_fix is not None
    assert (answer.first_fix.title == fix) is is_first
    assert [item.title for item in answer.causes[0].fixes].count(fix) <= 1


def test_an_incident_of_another_error_is_not_met(service: Service) -> None:
    """The same cause and words are not enough where the log shows another failure."""
    identifier = add(service, log(812))
    resolve(service, identifier, DISK_FULL)
    other = log(900).replace("OSError: [Errno 28] No space left on device", "OSError: bad gateway")
    met = service.diagnose_text(other.replace("7340032", "11")).met_before
    assert met is None or met.entry != identifier


SCRIPT = (
    "#!/bin/bash\nexport NCCL_TIMEOUT=7200\nexport NCCL_IB_DISABLE=1\n"
    "export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345\n"
    "torchrun --nproc_per_node 8 train.py --zero 3\n"
)


REPORT = f"Our job hung after an hour.\n\n{SCRIPT}\n{log(4812)}"


def put(service: Service, text: str, way: str) -> str:
    """Add a log as API and command line do, as the page does, or from the link to its diagnosis."""
    if way == "text":
        return add(service, text)
    reading = service.read_text(text)
    if way == "page":
        return add_reading(service, reading, name="pasted.log", text=text)
    saved = save_diagnosis(service, service.judge(reading))
    return add_reading(service, load_diagnosis(service, saved.id).reading, name="any.log")


def test_the_same_log_is_one_incident(service: Service) -> None:
    """From page, link or API: the second addition leads to the first and changes nothing."""
    for first, second in permutations(("text", "page", "link"), 2):
        identifier = put(service, REPORT, first)
        resolve(service, identifier, DISK_FULL)
        stored = service.entry(identifier)
        assert put(service, REPORT, second) == identifier
        assert service.entry(identifier) == stored
        assert len(service.incidents()) == 1
        other = add(service, REPORT.replace("after an hour", "after a day"))
        assert len(service.incidents()) == 2
        merge(service, other, [identifier])
        assert {put(service, REPORT, way) for way in (first, second)} <= {other, identifier}
        assert service.entry(identifier).id == other
        assert len(service.incidents()) == 1
        delete(service, other)


@pytest.mark.parametrize("way", ["text", "page", "link"])
def test_a_stored_incident_is_diagnosed_as_the_log_was(service: Service, way: str) -> None:
    """Scripts and settings stay, without secrets: causes, shares and warnings are the same."""
    reading = service.read_text(REPORT)
    identifier = put(service, REPORT, way)
    entry = service.entry(identifier)
    delete(service, identifier)
    assert "hf_abc" not in str(entry)
    assert "NCCL_IB_DISABLE=1" in entry.input_text
    again = service.diagnose_text(entry.input_text, language="en")
    once = service.answer(reading, language="en")
    assert [(c.id, c.probability) for c in again.causes] == [
        (c.id, c.probability) for c in once.causes
    ]
    assert {w.setting for w in once.warnings} == {w.setting for w in again.warnings} != set()
    assert not [chunk for chunk in entry.chunks if "torchrun" in chunk.text]


def test_a_deleted_incident_comes_back_whole(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With outcome, tags and the ids merged into it, for thirty days and no second longer."""
    one, two = add(service, log(812)), add(service, log(813))
    resolve(service, one, DISK_FULL, by="ada")
    merge(service, one, [two])
    stored = service.entry(one)
    now = time.time()
    delete(service, one)
    assert not names(service, log(900), one)
    monkeypatch.setattr("app.inputs.contributions.time.time", lambda: now + 30 * 86_400 + 5)
    with pytest.raises(NotFoundError, match="no deleted entry"):
        restore(service, one)
    monkeypatch.setattr("app.inputs.contributions.time.time", lambda: now + 30 * 86_400 - 5)
    assert restore(service, one) == stored
    assert service.entry(two) == service.entry(one) == stored
    assert names(service, log(900), one)
    with pytest.raises(NotFoundError, match="no deleted entry"):
        restore(service, one)
    delete(service, one, for_good=True)
    with pytest.raises(NotFoundError, match="no deleted entry"):
        restore(service, one)
    assert stored_rows(service.store, "SELECT id FROM deleted_entries") == []


def test_what_was_deleted_long_ago_is_gone_for_good(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening the store deletes it, also where nobody deletes anything else."""
    identifier = add(service, log(812))
    delete(service, identifier)
    later = time.time() + 31 * 86_400
    monkeypatch.setattr("kb.store.store.time.time", lambda: later)
    Store.open(service.store.path).close()
    assert stored_rows(service.store, "SELECT id FROM deleted_entries") == []


def test_confirmed_threads_vote_and_guesses_do_not(service: Service) -> None:
    """An imported page counts once somebody confirmed its cause; the page of a case never twice."""
    text = log(900)
    page = replace(
        service.entry(add(service, log(812))),
        id="thread-0123456789abcdef",
        kind="thread",
        source_key="page",
        resolved=True,
        causes=(CauseClaim(id="checkpoint-io", status="unverified"),),
        url="https://example.org/page",
    )
    page = replace(
        page,
        chunks=tuple(replace(c, id=f"{page.id}#{c.id[-1]}", entry_id=page.id) for c in page.chunks),
    )
    service.apply([page])
    assert page.id not in voters(service, text)
    confirmed = replace(
        page, status="confirmed", causes=(CauseClaim(id="checkpoint-io", status="confirmed"),)
    )
    service.apply([confirmed])
    assert voters(service, text)[0] == page.id
    of_case = service.knowledge.cases[0].url
    service.apply([replace(confirmed, url=of_case)])
    assert page.id not in voters(service, text)


def test_its_title_is_what_happened_not_the_files_name(service: Service) -> None:
    """In both languages, as the answer's headline says it."""
    entry = service.entry(add(service, log(812)))
    for language in LANGUAGES:
        said = service.diagnose_text(log(812), language=language)
        assert entry.title.get(language) == said.headline
    assert "job-4711" not in repr(entry.title)


def test_the_chat_names_the_teams_incident(service: Service) -> None:
    """In its first answer, and with what helped when asked for by its id or its place."""
    identifier = add(service, log(812))
    resolve(service, identifier, DISK_FULL)
    chat = Chat(service)
    begun = chat.say(log(900), language="en", create=True)
    assert begun.diagnosis is not None
    assert begun.diagnosis.cases[0].id == identifier
    shown = chat.say(f"show me {identifier}", conversation=begun.conversation)
    assert FIX in repr(shown)
    again = chat.say("show me the first case", conversation=begun.conversation)
    assert shown.cases == again.cases == (identifier,)


def test_the_same_log_again_takes_nothing_back(service: Service) -> None:
    """Who adds it anew is given the id of the one that is there, outcome, title and all."""
    identifier = add(service, log(812))
    edit(service, identifier, Changes(title="node7 again"))
    resolved = resolve(service, identifier, DISK_FULL, by="ada")
    report = add_text(service, log(812), name="copy.log")
    assert (report.entries, report.added, report.unchanged) == ((identifier,), 0, 1)
    assert service.entry(identifier) == resolved
    assert (resolved.title.zh, resolved.resolved_by) == ("node7 again", "ada")


def test_what_changes_changes_and_the_rest_stays(service: Service) -> None:
    """Title, tags, cause and fix one by one; an outcome has a cause and a fix or neither."""
    identifier = add(service, log(812))
    for half in (Changes(cause="checkpoint-io"), Changes(fix=FIX)):
        with pytest.raises(InputError, match="together or neither"):
            edit(service, identifier, half)
    edit(service, identifier, Changes(cause="rank-crash", fix=FIX, commands=("df -h",)), by="ada")
    entry = edit(service, identifier, Changes(labels=("disk", " disk ", "node 7")), by="bob")
    assert (entry.labels, entry.resolved_by) == (("disk", "node 7"), "ada")
    entry = edit(service, identifier, Changes(cause="checkpoint-io"), by="bob")
    assert [claim.id for claim in entry.causes] == ["checkpoint-io"]  # not the one corrected
    fix = entry.fixes[0]
    assert (fix.title.en, fix.commands, entry.corrected_by) == (FIX, ("df -h",), "bob")
    assert service.entry(identifier) == entry


def test_a_correction_keeps_the_day_it_was_resolved(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When and by whom it was resolved stays; the same outcome once more is no correction."""
    identifier = add(service, log(812))
    first = resolve(service, identifier, DISK_FULL, by="ada")
    assert (first.resolved_by, first.corrected_on, first.corrected_by) == ("ada", "", "")
    monkeypatch.setattr("app.inputs.contributions._now", lambda: "2030-01-02T03:04:05Z")
    assert resolve(service, identifier, DISK_FULL, by="bob") == first
    changed = resolve(service, identifier, replace(DISK_FULL, fix="a new disk"), by="bob")
    assert (changed.resolved_on, changed.resolved_by) == (first.resolved_on, "ada")
    assert (changed.corrected_on, changed.corrected_by) == ("2030-01-02T03:04:05Z", "bob")
    shown = render_incidents([changed], Words(service.knowledge.labels, "en"))
    assert "2030-01-02T03:04:05Z · bob" in shown.replace("\\", "")


def test_an_own_cause_gives_way_to_a_known_one(service: Service) -> None:
    """A cause in a person's words is redacted and stands until a known cause is named."""
    identifier = add(service, log(812))
    own = Resolution(cause="", own_cause=f"riser {SECRET}", fix="")
    entry = resolve(service, identifier, own)
    assert (entry.resolved, entry.causes, entry.fixes) == (False, (), ())
    assert "riser" in entry.own_cause
    assert SECRET not in repr(entry)
    entry = edit(service, identifier, Changes(fix=FIX))
    assert (entry.resolved, entry.own_cause[:5], entry.fixes[0].title.en) == (True, "riser", FIX)
    entry = edit(service, identifier, Changes(cause="checkpoint-io"))
    assert (entry.own_cause, entry.causes[0].id) == ("", "checkpoint-io")
    assert "riser" not in repr(entry)
    with pytest.raises(InputError, match="is not a cause"):
        resolve(service, identifier, Resolution(cause="", fix=FIX))


def test_what_people_write_is_redacted(service: Service) -> None:
    """Titles, tags and names, like fixes."""
    identifier = add(service, log(812))
    edit(service, identifier, Changes(title=f"token {SECRET}", labels=(f"x {SECRET}",)), by=SECRET)
    resolve(service, identifier, DISK_FULL, by=SECRET)
    assert SECRET not in repr(service.entry(identifier))
    assert not names(service, log(900), SECRET)


@pytest.mark.parametrize(
    "change",
    [
        lambda service, case: edit(service, case, Changes(title="mine")),
        lambda service, case: merge(service, case, ["x"]),
        lambda service, case: merge(service, add(service, log(1)), [case]),
    ],
    ids=["edit", "merge-into", "merge"],
)
def test_reviewed_cases_stay_as_they_are(
    service: Service, change: Callable[[Service, str], object]
) -> None:
    """They change in their files."""
    case = service.knowledge.cases[0]
    with pytest.raises(InputError, match="is a reviewed case"):
        change(service, case.id)
    assert service.entry(case.id) == case


def test_merged_incidents_are_one(service: Service) -> None:
    """One stays with the outcome there is; the other's id, and its log added anew, lead to it."""
    first, second, third = (add(service, log(step)) for step in (1, 2, 3))
    edit(service, second, Changes(labels=("disk",)))
    places = (RankPlace(rank=3, host="node7"),)
    service.apply([replace(service.entry(third), culprits=places)])
    told = resolve(service, second, DISK_FULL, by="ada")
    count = service.store.count()
    merge(service, first, [second, second, first])
    one = merge(service, third, [first])
    assert service.store.count() == count - 2
    assert one.merged == (first, second)
    assert (one.causes, one.resolved_on, one.resolved_by) == (told.causes, told.resolved_on, "ada")
    assert (one.labels, one.culprits) == (("disk",), places)
    assert one.fixes[0].id == f"{third}/resolution"
    assert set(told.signature) <= set(one.signature)
    for identifier in (first, second, third):
        assert service.entry(identifier) == one
    assert add_text(service, log(1), name="again.log").added == 0
    assert service.store.count() == count - 2
    with pytest.raises(NotFoundError, match="was merged into"):
        delete(service, first)
    with pytest.raises(InputError, match="no other incident"):
        merge(service, third, [first, second])
    delete(service, third)
    with pytest.raises(NotFoundError):
        service.entry(first)
    assert add_text(service, log(1), name="again.log").added == 1


def test_many_at_once_lose_nothing(service: Service) -> None:
    """Of many changes at the same time each is there in the end."""
    identifier = add(service, log(812))
    others = [add(service, log(step)) for step in (1, 2, 3)]

    def change(number: int) -> object:
        if number < len(others):
            return merge(service, identifier, [others[number]])
        return edit(service, identifier, Changes(title="the title"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, range(4)))
    entry = service.entry(identifier)
    assert (sorted(entry.merged), entry.title.en) == (sorted(others), "the title")


KILLED = """
import os, sys
from pathlib import Path
from app.inputs.contributions import merge
from kb.bootstrap import open_service
from kb.settings import Settings
import kb.store.store as store
def die(*_):
    os.kill(os.getpid(), 9)
store.put = die  # after the others are deleted, before the one that stays is written
merge(open_service(Settings(home=Path(sys.argv[1]))), sys.argv[2], sys.argv[3:])
"""


def test_a_merge_that_is_killed_changes_nothing(service: Service, home: Path, root: Path) -> None:
    """Both incidents are there as they were, and the merge can be done again."""
    first, second = add(service, log(1)), add(service, log(2))
    were = [service.entry(first), service.entry(second)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILLED, str(home), first, second],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert [service.entry(first), service.entry(second)] == were
    assert merge(service, first, [second]).merged == (second,)


def test_an_export_can_be_read(service: Service) -> None:
    """Markdown with title, outcome, who and when, commands and log; nothing in it is markup."""
    identifier = add(service, log(812))
    edit(service, identifier, Changes(title="<b>disk</b> *full*", labels=("`x`",)))
    entry: Entry = resolve(service, identifier, DISK_FULL, by="ada")
    text = render_incidents([entry], Words(service.knowledge.labels, "en"))
    assert text.startswith("## \\<b>disk\\</b> \\*full\\*\n")
    for part in (f"`{identifier}`", "checkpoint-io", "ada", entry.resolved_on[:10], "df -h"):
        assert part in text
    assert "No space left on device" in text
    twice = render_incidents(
        [entry, replace(entry, title=Bilingual(zh="二", en="two"))],
        Words(service.knowledge.labels, "zh"),
    )
    assert twice.count("\n## ") == 1
    assert "\n## 二\n" in twice
