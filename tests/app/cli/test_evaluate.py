"""`timeout-kb evaluate retrieval`: what it prints for a small golden set and a few threads."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.cli import main as cli
from app.cli.common import State
from kb.evaluation.golden import PASSES, QUERIES
from kb.evaluation.published import load_published
from kb.settings import Settings
from kb.types.entries import Entry
from tests.kb.evaluation.test_search_quality import twin

COLUMNS = ["MRR", "recall@1", "recall@5", "recall@10", "nDCG@10"]
ROUTES = ["lexical", "lexical + expansion", "dense", "hybrid"]


@dataclass(frozen=True)
class CasesOnly:
    """As much of the service as the measurement asks for."""

    cases: tuple[Entry, ...]
    knowledge: SimpleNamespace = field(init=False)

    def __post_init__(self) -> None:
        """Put the cases where the service has them."""
        object.__setattr__(self, "knowledge", SimpleNamespace(cases=self.cases, framework_names=()))

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def state(tmp_path: Path, data_dir: Path, settings: Settings) -> State:
    """The shipped model and word lists, two cases and two judged queries."""
    data = tmp_path / "data"
    (data / "golden").mkdir(parents=True)
    for name in ("model", "lexicon", "search"):
        (data / name).symlink_to(data_dir / name)
    queries = [
        {"id": "q1", "language": "zh", "kind": "words", "text": "保存检查点时卡住"},
        {"id": "q2", "language": "en", "kind": "words", "text": "link flaps on the fabric"},
        {"id": "q3", "language": "en", "kind": "words", "text": "its case is not here"},
    ]
    grades: dict[str, dict[str, int]] = {"q1": {"save": 2}, "q2": {"link": 2}, "q3": {"gone": 2}}
    rows = [json.dumps({"query": query, "grades": its}) for query, its in grades.items()]
    (data / "golden" / QUERIES).write_text("\n".join(map(json.dumps, queries)), "utf-8")
    for name in PASSES:
        (data / "golden" / name).write_text("\n".join(rows), "utf-8")
    service = CasesOnly(
        (
            twin("save", "保存检查点时所有进程都停住", "saving a checkpoint stops all processes"),
            twin("link", "交换机上的链路闪断", "a link of the fabric flaps"),
        )
    )
    return State(
        open_service=lambda _settings, **_options: service,  # type: ignore[arg-type]
        settings_source=lambda: replace(settings, data=data),
    )


def test_tables_by_setting_and_route(state: State, capsys: pytest.CaptureFixture[str]) -> None:
    """Every setting has a row a route and a column a measure; queries left out are counted."""
    words = ["evaluate", "retrieval", "--no-minilm", "--format", "json"]
    assert cli.run(words, state=state) == 0
    figures = json.loads(capsys.readouterr().out)
    summary = figures["retrieval"]["golden set"]
    assert summary["queries"] == "2 (1 left out, their cases are not here)"
    assert summary["two judgements"] == "kappa nan, equal 100.0% of 3"
    tables = figures["retrieval by route"]
    crossing = tables["golden set, cross-language (n=2)"]
    assert list(crossing) == ROUTES
    assert list(crossing["hybrid"]) == COLUMNS
    assert crossing["lexical"]["MRR"] == "0.000 [0.00, 0.00]"
    assert crossing["hybrid"]["recall@5"] == "1.000 [1.00, 1.00]"


def test_threads_add_their_tables(
    state: State, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With labelled threads the posts are measured too, as text under a header."""
    common = {"title": "T", "query_log": "", "lang": "en", "cause": "rank-crash", "also": []}
    common |= {"url": "https://example.org/1", "repo": "owner/name"}
    threads = [
        common | {"id": "1", "query_text": "red", "root_cause": "red", "fix": "paint"},
        common | {"id": "2", "query_text": "salt", "root_cause": "salt", "fix": "water"},
    ]
    path = tmp_path / "threads.jsonl"
    path.write_text("".join(json.dumps(thread) + "\n" for thread in threads), "utf-8")
    words = ["evaluate", "retrieval", "--no-minilm", "--threads", str(path)]
    assert cli.run(words, state=state) == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("posts and their threads' causes, en→en (n=2)")
    assert lines[start + 1].split() == COLUMNS
    assert lines[start + 2].split() == ["lexical", *["1.000", "[1.00,", "1.00]"] * 5]


def test_the_report_gets_the_figures_of_the_search(state: State, tmp_path: Path) -> None:
    """With `--report` the figures are kept for the page, route by route."""
    folder = tmp_path / "report"
    words = ["evaluate", "retrieval", "--no-minilm", "--report", str(folder)]
    assert cli.run(words, state=state) == 0
    found = load_published(folder).retrieval
    assert found is not None
    assert (found.queries, found.cases) == (2, 2)
    recall = {(row.setting, row.route): row.recall_at_5.mean for row in found.routes}
    assert {route for setting, route in recall if setting == "same language"} == set(ROUTES)
    assert recall["cross-language", "hybrid"] == 1.0


def test_a_report_of_nothing_is_refused(state: State, capsys: pytest.CaptureFixture[str]) -> None:
    """The coverage of the knowledge has no report."""
    assert cli.run(["evaluate", "knowledge", "--report", "x"], state=state) == 2
    assert "not of knowledge" in capsys.readouterr().err


def test_statements_are_measured_on_a_file_of_sentences(
    tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--show` what is wrong is listed; a file belongs to no other figure."""
    path = tmp_path / "sentences.jsonl"
    lines = [
        {"lang": "en", "text": "no Xid", "statements": [["gpu_hardware", "denied"]]},
        {"lang": "zh", "text": "防火墙已经关了", "statements": [["network", "in_order"]]},
    ]
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), "utf-8")
    words = ["evaluate", "statements", str(path), "--show", "--format", "json"]
    assert cli.run(words, state=State(settings_source=lambda: settings)) == 0
    figures = json.loads(capsys.readouterr().out)["statements"]
    assert figures["sentences with all statements right"]["all"] == "0.500 of 2"
    assert figures["read wrongly"] == {"防火墙已经关了": "-network in_order, +firewall in_order"}
    assert (
        cli.run(["evaluate", "knowledge", str(path)], state=State(settings_source=lambda: settings))
        == 2
    )


def test_notes_are_measured_on_a_file_of_questions(
    tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table has the halves and the languages; `--show` lists what is answered wrongly."""
    path = tmp_path / "questions.jsonl"
    lines = [
        {
            "question": "SeqNum 是什么意思",
            "language": "zh",
            "notes": ["meaning-seqnum"],
        },
        {"question": "what does SeqNum mean", "language": "en", "notes": []},
    ]
    rows = [json.dumps({**line, "url": "https://example.org"}) for line in lines]
    path.write_text("\n".join(rows), "utf-8")
    words = ["evaluate", "notes", str(path), "--format", "json"]
    state = State(settings_source=lambda: settings)
    assert cli.run(words, state=state) == 0
    table = json.loads(capsys.readouterr().out)["notes"]["notes: 2 questions"]
    assert table["an answering note is first"]["in all"].startswith("1.00")
    assert table["none is shown where none answers"]["en"].startswith("0.00")
    assert cli.run([*words, "--show"], state=state) == 0
    wrong = json.loads(capsys.readouterr().out)["notes"]["questions answered wrongly"]
    assert list(wrong) == ["what does SeqNum mean"]
    assert wrong["what does SeqNum mean"].startswith("-: meaning-seqnum")
