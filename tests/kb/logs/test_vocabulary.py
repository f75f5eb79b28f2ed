"""The closed vocabulary of events and facts, checked in both directions."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from kb.errors import DataError
from kb.knowledge.load import Knowledge, load_knowledge, read_yaml
from kb.logs import LogReader
from kb.logs.event_log import EventVocabulary
from kb.logs.incident.environment import BACKENDS, TRANSPORTS
from kb.types import vocabulary as names
from kb.types.vocabulary import CUE_GROUPS, EventRole, Stage

ROOT = Path(__file__).resolve().parents[3]
READS_EVENTS = ("kb/logs", "kb/evidence", "kb/diagnose", "kb/settings_check", "ingest")
MAKES_FACTS = [
    *sorted((ROOT / "kb/logs/incident").glob("*.py")),
    *sorted((ROOT / "kb/evidence").rglob("*.py")),
]
FAMILIES = {
    "stage_": set(get_args(Stage)) - {"unknown"},
    "transport_": {*TRANSPORTS.values(), "ib"} | {"wrong_interface"},
    "backend_": set(BACKENDS),
}

NEW_EVENTS = """
- id: acme_stall
  means: {zh: ACME 报告通信超时, en: ACME reports a collective that timed out}
  roles: [work_report, watchdog_report, rank_waited]
- id: acme_shard
  means: {zh: ACME 正在分片数据, en: ACME shards the data}
  stage: data
  fact: tokenizer_or_map_progress_nearby
  nearby: true
"""
NEW_PATTERNS = """
- id: acme-stall
  regex: 'ACME: stalled in '
  capture: '(?P<op>[A-Z]+) number (?P<seq>\\d+) on (?P<rank>\\d+) after (?P<timeout_ms>\\d+)'
  kind: timeout
  event: acme_stall
  means: {zh: ACME 报告通信超时, en: ACME reports a collective that timed out}
  examples: ['ACME: stalled in ALLREDUCE number 7 on 3 after 600000']
- id: acme-shard
  regex: 'ACME: sharding '
  kind: context
  event: acme_shard
  means: {zh: ACME 正在分片数据, en: ACME shards the data}
  examples: ['ACME: sharding 3 of 9']
"""


@pytest.fixture
def data(data_dir: Path, tmp_path: Path) -> Path:
    """A copy of the knowledge without cases."""
    copy = tmp_path / "data"
    copy.mkdir()
    for path in data_dir.glob("*.yaml"):
        shutil.copy(path, copy)
    shutil.copytree(data_dir / "labels", copy / "labels")
    (copy / "cases").mkdir()
    return copy


def test_a_new_event_of_a_known_role_is_data_only(data: Path) -> None:
    """A pattern and an event in the data folder are read as the built-in ones are."""
    for name, more in (("events.yaml", NEW_EVENTS), ("patterns.yaml", NEW_PATTERNS)):
        with (data / name).open("a", encoding="utf-8") as file:
            file.write(more)
    reader = LogReader(EventVocabulary.of(load_knowledge(data)), cache=None)
    lines = [f"ACME: stalled in ALLREDUCE number 70 on {rank} after 600000" for rank in (0, 1, 3)]
    incident = reader.read_text("\n".join(["ACME: sharding 3 of 9", *lines])).incident
    assert (incident.op, incident.seq, incident.timeout_ms) == ("ALLREDUCE", 70, 600_000)
    assert incident.ranks_reporting == (0, 1, 3)
    assert incident.ranks_silent == (2,)
    assert incident.stage == "data"
    assert {"default_timeout_600s", "tokenizer_or_map_progress_nearby"} <= {
        fact.name for fact in incident.facts
    }


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        pytest.param(
            "patterns.yaml",
            "event: rank_progress",
            "event: rank_progres",
            r"patterns\.yaml: event of [\w-]+: 'rank_progres' is no event",
            id="event-of-a-pattern",
        ),
        pytest.param(
            "cues.yaml",
            "event: distributed",
            "event: distributeds",
            r"cues\.yaml: event of cue-distributed: 'distributeds' is no group",
            id="group-of-cues",
        ),
        pytest.param(
            "events.yaml",
            "id: watchdog_abort",
            "id: watchdog_aborts",
            r"patterns\.yaml: event of [\w-]+: 'watchdog_abort' is no event",
            id="renamed-event",
        ),
        pytest.param(
            "events.yaml",
            "- id: collective_timeout",
            "- {id: nobody_prints_it, means: {zh: 无, en: none}}\n- id: collective_timeout",
            r"events\.yaml: id 'nobody_prints_it' is made by no pattern",
            id="event-without-a-pattern",
        ),
        pytest.param(
            "events.yaml",
            "roles: [setting]",
            "roles: [settings]",
            r"events\.yaml.*\.roles\[0\]: 'settings' is not one of .*did you mean 'setting'",
            id="role",
        ),
        pytest.param(
            "events.yaml", "stage: eval", "stage: evals", r"events\.yaml.*'evals'", id="stage"
        ),
        pytest.param(
            "events.yaml",
            "fact: at_eval",
            "fact: at_evals",
            r"events\.yaml: fact of evaluating: 'at_evals' is no fact",
            id="fact-of-an-event",
        ),
        pytest.param(
            "input_evidence.yaml",
            "event:thread_dump",
            "event:thread_dumps",
            r"input_evidence\.yaml: shown_by of python-stacks: 'thread_dumps' is no event",
            id="kind-of-evidence",
        ),
        pytest.param(
            "causes.yaml",
            "fact:mismatch_of_sizes",
            "fact:mismatch_of_size",
            r"causes\.yaml: signs of [\w/-]+: 'mismatch_of_size' is no fact",
            id="sign-of-a-fix",
        ),
        pytest.param(
            "causes.yaml",
            "event:store_connect",
            "event:store_connects",
            r"causes\.yaml: \w+ of [\w/-]+: 'store_connects' is no event",
            id="what-to-collect",
        ),
        pytest.param(
            "missing_evidence.yaml",
            "!event:fr_dump_failed",
            "!event:fr_dump_fails",
            r"missing_evidence\.yaml: when of flight-recorder: 'fr_dump_fails' is no event",
            id="what-is-missing",
        ),
        pytest.param(
            "causes.yaml",
            "cue:cue-small-data-passes",
            "cue:cue-small-data",
            r"causes\.yaml: shown_by of collective-mismatch/tiny-eval: 'cue-small-data' is no cue",
            id="outcome-of-a-check",
        ),
        pytest.param(
            "causes.yaml",
            "topic:p2p:helped",
            "topic:p2p:helps",
            r"causes\.yaml: shown_by of p2p-topology/p2p-off: 'p2p:helps' is no topic",
            id="topic-of-an-outcome",
        ),
        pytest.param(
            "launchers.yaml",
            "framework:sglang",
            "framework:slang",
            r"launchers\.yaml: shown_by of sglang: 'slang' is no framework",
            id="sign-of-a-launcher",
        ),
    ],
)
def test_an_unknown_name_is_refused(data: Path, file: str, old: str, new: str, says: str) -> None:
    """The message names the file, the field and the value."""
    text = (data / file).read_text(encoding="utf-8")
    assert old in text
    (data / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataError, match=says):
        load_knowledge(data)


def test_every_role_is_played(knowledge: Knowledge) -> None:
    """What the program asks for, some event is; so is every group of cues."""
    assert {role for item in knowledge.events for role in item.roles} == set(EventRole)
    assert set(CUE_GROUPS) <= {cue.event for cue in knowledge.cues}


def test_every_role_is_asked_for() -> None:
    """No role is declared that the program does not use."""
    used = {
        node.attr
        for _, tree in modules("kb")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "EventRole"
    }
    assert used == {role.name for role in EventRole}


def test_code_names_no_event(knowledge: Knowledge) -> None:
    """Python asks for roles; the few single events it names are declared constants."""
    declared = {item.id for item in knowledge.events}
    for where, tree in modules(*READS_EVENTS):
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and ast.unparse(node.left).endswith(".event"):
                literals = {s for right in node.comparators for s in strings(right)}
                assert not literals, f"{where}:{node.lineno} names {literals}"
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith("_EVENT"):
                assert set(strings(node.value)) <= declared, f"{where}:{node.lineno}"
    assert names.SETTING_EVENT in declared


def test_every_fact_has_a_meaning(knowledge: Knowledge) -> None:
    """Whatever name code gives a fact stands in facts.yaml or dump_facts.yaml."""
    declared = {fact.id for fact in knowledge.facts}
    unknown = {name for name in made_facts() if not _declared(name, declared)}
    assert not unknown


def test_every_meaning_has_a_fact(knowledge: Knowledge, data_dir: Path) -> None:
    """No meaning stands in the data that no code and no other data makes a fact of."""
    made = made_facts() | {item.fact for item in knowledge.events if item.fact}
    rows = read_yaml(data_dir / "kernel_lines.yaml", list[dict[str, str]])
    made |= {row["fact"] for row in rows} | named_in_evidence()
    nobody = set()
    for fact in knowledge.facts:
        families = [name[:-1] for name in made if name.endswith("*")]
        of_family = any(
            fact.id.startswith(family) and _member(family, fact.id.removeprefix(family), knowledge)
            for family in families
        )
        if fact.id not in made and not of_family:
            nobody.add(fact.id)
    assert not nobody


def _member(family: str, ending: str, knowledge: Knowledge) -> bool:
    if family in FAMILIES:
        return ending in FAMILIES[family] | {"*"}
    if family in ("exit_code_", "signal_"):
        return ending.isdigit() or ending == "*"
    if family == "framework_":
        return ending in {item.id for item in knowledge.frameworks} | {"*"}
    return True


def _declared(name: str, declared: set[str]) -> bool:
    if name.endswith("*"):
        return any(other.startswith(name[:-1]) for other in declared)
    return name in declared


def modules(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    """The modules under these folders of the project, parsed."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def strings(node: ast.AST) -> Iterator[str]:
    """Literal strings in an expression; of an f-string its beginning with ``*``."""
    if isinstance(node, ast.JoinedStr):
        first = node.values[0]
        if isinstance(first, ast.Constant):
            yield f"{first.value}*"
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from strings(value)
    elif isinstance(node, ast.IfExp):
        yield from strings(node.body)
        yield from strings(node.orelse)
    else:
        for child in ast.iter_child_nodes(node):
            yield from strings(child)


def made_facts() -> set[str]:
    """Names that code gives facts, `*` where a part is computed; names it looks up are followed."""
    made: set[str] = set()
    for path in MAKES_FACTS:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in [tree, *(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))]:
            scope = list(ast.walk(function)) + tree.body
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                if ast.unparse(call.func) in ("Fact", "_fact"):
                    named = [k.value for k in call.keywords if k.arg == "name"] or call.args[:1]
                    made |= _names(named[0], scope)
    return made


def _names(node: ast.expr, scope: list[ast.AST]) -> set[str]:
    if isinstance(node, ast.IfExp):
        return _names(node.body, scope) | _names(node.orelse, scope)
    if isinstance(node, ast.Subscript):
        return _names(node.value, scope)
    texts = set(strings(node))
    if isinstance(node, ast.JoinedStr):
        return texts
    looked_up = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    for other in scope:
        if isinstance(other, ast.Assign) and ast.unparse(other.targets[0]) in looked_up:
            texts |= _names(other.value, [n for n in scope if n is not other])
    return texts


def named_in_evidence() -> set[str]:
    """Every string in the modules that read dumps: some make a fact of what they look up."""
    return {
        text
        for path in MAKES_FACTS[1:]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant | ast.JoinedStr)
        for text in strings(node)
    }
