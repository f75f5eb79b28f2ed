"""`timeout-kb learn`: outcomes change answers, mistaken ones nothing, undo brings back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from app.cli.common import State
from app.cli.main import run
from app.inputs.contributions import Resolution, add_feedback, add_text, resolve
from app.inputs.feedback import Feedback
from kb.bootstrap import open_service
from kb.diagnose.learned import FOLDER, learned_files
from kb.saved import save_diagnosis
from kb.service import Service
from kb.settings import Settings, shipped_data
from kb.train.reports import load_reports

WATCHDOG = (
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:563] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=25165824, NumelOut=25165824, "
    "Timeout(ms)=600000) ran for 600068 milliseconds before timing out."
)
STALLS = (
    "Run {seq} froze in the night, the quobyte client on one of the nodes had complained before.",
    "Training makes no progress since step {seq}. Operations say quobyte had a hiccup then.",
    "All GPUs at 100 % and nothing moves at step {seq}. There are quobyte messages in dmesg.",
    "Job {seq} hung, then came the watchdog. A Quobyte volume was slow at the time.",
    "At step {seq} everything waits, as it did last week. A quobyte registry failed over.",
    "Another freeze at {seq}. The quobyte mount did not answer for a while.",
)
SEVENTH = "Frozen at step {seq} again, quobyte was restarting on two hosts."


def report(words: str, number: int) -> str:
    """A paste: a person's words and the watchdog's line."""
    seq = 1000 + 137 * number
    return f"{words.format(seq=seq)}\n\n{WATCHDOG.format(rank=number, seq=seq)}"


@pytest.fixture
def home(built_home: Callable[[], Path]) -> Path:
    """A state folder of the test's own."""
    return built_home()


@pytest.fixture
def learn(home: Path) -> Callable[..., int]:
    """Runs the verb on `home`."""

    def called(*words: str) -> int:
        return run(["learn", *words], state=State(settings_source=lambda: Settings(home=home)))

    return called


@pytest.fixture
def opened(home: Path) -> Iterator[Callable[[], Service]]:
    """Opens the knowledge base of `home`, as often as wanted."""
    services: list[Service] = []

    def open_one() -> Service:
        services.append(open_service(Settings(home=home)))
        return services[-1]

    yield open_one
    for service in services:
        service.close()


def resolved(service: Service, pastes: list[str], cause: str) -> None:
    """Add each paste as an incident that ended as `cause`."""
    for number, text in enumerate(pastes):
        added = add_text(service, text, name=f"incident-{number}.log")
        resolve(service, added.entries[0], Resolution(cause=cause, fix="The client was restarted"))


def test_confirmed_outcomes_change_the_next_answer(
    learn: Callable[..., int],
    opened: Callable[[], Service],
    home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Six stalls of a storage nobody shipped: the seventh is read as one, and undo forgets it."""
    before = opened()
    resolved(before, [report(text, number) for number, text in enumerate(STALLS)], "checkpoint-io")
    seventh = report(SEVENTH, 6)
    shipped, shipped_version = before.diagnose_text(seventh, language="en"), before.version()
    assert shipped.causes[0].id != "checkpoint-io"

    assert learn("--format", "json") == 0
    tried = json.loads(capsys.readouterr().out)
    first = (home / FOLDER / "0001.json").read_bytes()
    assert learn("--lang", "en") == 0  # the same outcomes give the same bytes, and no second file
    said = capsys.readouterr().out
    assert [path.read_bytes() for path in learned_files(home)] == [first]
    assert "6 confirmed outcomes of your team" in said
    assert "term:quobyte → checkpoint-io +" in said
    golden = tried["golden"]
    assert golden[1]["first"] == golden[0]["first"]
    assert golden[1]["three"] == golden[0]["three"]
    assert golden[0]["count"] == 56
    assert tried["team"][1]["first"] > tried["team"][0]["first"]

    service = opened()
    learned = service.diagnose_text(seventh, language="en")
    assert learned.causes[0].id == "checkpoint-io"
    assert learned.causes[0].probability > 0.25
    own = [item for item in learned.causes[0].evidence if item.origin == "site"]
    assert [item.reason for item in own] == ["incidents your team confirmed have “quobyte” as well"]
    assert own[0].quote == SEVENTH.format(seq=1822)
    assert service.version() != shipped_version
    # a server that was running all the while
    assert before.version() == service.version()
    assert before.diagnose_text(seventh, language="en").causes == learned.causes

    assert learn("--undo") == 0
    assert learned_files(home) == []
    back = opened()
    assert msgspec.to_builtins(back.diagnose_text(seventh, language="en")) | {"took_ms": 0} == (
        msgspec.to_builtins(shipped) | {"took_ms": 0}
    )
    assert back.version() == shipped_version
    assert before.diagnose_text(seventh, language="en").causes == shipped.causes
    assert before.version() == shipped_version
    assert learn("--undo") == 1


def test_mistaken_outcomes_are_refused(
    learn: Callable[..., int],
    opened: Callable[[], Service],
    home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Incidents of many causes that are all called one: the gate says so and nothing changes."""
    reports = {one.cause: one for one in load_reports(shipped_data() / "reports") if one.log}
    pastes = [
        f"{one.text}\nThe job runs on tkcluster-a.\n\n{one.log}\n{WATCHDOG.format(rank=1, seq=812)}"
        for cause, one in sorted(reports.items())
        if cause not in ("software-version", "unknown")
    ][:8]
    service = opened()
    resolved(service, pastes, "software-version")
    shipped = service.diagnose_text(report(SEVENTH, 6))
    assert learn("--lang", "en") == 1
    assert "Nothing kept" in capsys.readouterr().out
    assert not (home / FOLDER).exists()
    again = opened().diagnose_text(report(SEVENTH, 6))
    assert msgspec.to_builtins(again) | {"took_ms": 0} == (
        msgspec.to_builtins(shipped) | {"took_ms": 0}
    )


def test_judged_answers_count_as_outcomes(
    learn: Callable[..., int],
    opened: Callable[[], Service],
    home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """“Wrong, it was X” of a saved diagnosis teaches as well; one that is gone is left out.

    A dry run says what would be learned and keeps nothing.
    """
    service = opened()
    for number, text in enumerate((*STALLS, *STALLS)):
        verdict = service.judge(service.read_text(report(text, number)))
        saved = save_diagnosis(service, verdict)
        wrong = Feedback(
            verdict="wrong", cause="rank-crash", actual="checkpoint-io", diagnosis=saved.id
        )
        add_feedback(service, wrong, source="api")
    gone = Feedback(verdict="right", cause="rank-crash", diagnosis="gone")
    add_feedback(service, gone, source="api")
    assert learn("--dry-run", "--format", "json") == 0
    assert learned_files(home) == []
    result = json.loads(capsys.readouterr().out)
    assert (result["outcomes"], result["left_out"]) == (12, 1)
    assert result["learned"]["corrections"]["term:quobyte"]["checkpoint-io"] > 0.3


def test_few_outcomes_teach_nothing(
    learn: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without outcomes there is nothing to hold out."""
    assert learn("--lang", "zh") == 1
    assert "结果太少" in capsys.readouterr().out
