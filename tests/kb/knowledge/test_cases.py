"""Case files: what the checker accepts, and how it says in plain words what is missing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kb.errors import DataError
from kb.knowledge.cases import load_case, parse_case, places_to_do
from kb.knowledge.check import check_case
from kb.knowledge.load import read_knowledge
from kb.settings import shipped_data

CASE = """---
id: toy-case
title: {zh: 玩具案例, en: A toy case}
project: owner/toy
cause: uneven-data
also: [collective-mismatch]
status: confirmed
first_seen: 2024-06-18
backend: nccl
stage: train
ops: [ALLREDUCE]
signature: ["WorkNCCL(SeqNum=5, OpType=ALLREDUCE"]
sources: [{url: "https://example.org/issues/1", confirms: the fix}]
fixes:
  - title: {zh: 固定种子, en: Fix the seed}
    steps: [{zh: 设种子, en: set the seed}]
    commands: ["np.random.seed(1)"]
    status: confirmed
---
# zh
## 现象
训练卡住。
## 根因
数据不等。
## 解决
固定种子。
## 验证
再跑一次。
# en
## Symptom
Training hangs.
## Cause
Unequal data.
## Fix
Fix the seed.
## How to verify
Run it again.
"""


def test_a_case_becomes_an_entry() -> None:
    """Front matter, both bodies and the signature arrive in the entry."""
    entry = parse_case(CASE, name="toy-case.md")
    assert (entry.id, entry.kind, entry.language, entry.status) == (
        "toy-case",
        "case",
        "both",
        "confirmed",
    )
    assert [claim.id for claim in entry.causes] == ["uneven-data", "collective-mismatch"]
    assert entry.fixes[0].id == "toy-case/fix-1"
    assert [(s.language, s.role) for s in entry.sections] == [
        (language, role)
        for language in ("zh", "en")
        for role in ("symptoms", "causes", "fixes", "verify")
    ]
    symptoms = next(c for c in entry.chunks if c.role == "symptoms" and c.language == "en")
    assert symptoms.text == "A toy case\nTraining hangs.\nWorkNCCL(SeqNum=5, OpType=ALLREDUCE"


CLAIM = """claims:
  - about: fix
    text: {zh: 降级就好, en: An older release helps.}
    status: contradicted
fixes:
"""


def test_claims_are_found_behind_their_standing() -> None:
    """A chunk a language with the title and a line a claim; the digest tells stores to take it."""
    plain = parse_case(CASE, name="toy-case.md")
    entry = parse_case(CASE.replace("fixes:\n", CLAIM), name="toy-case.md")
    assert entry.chunks[: len(plain.chunks)] == plain.chunks
    assert [(c.id, c.role, c.language, c.text) for c in entry.chunks[len(plain.chunks) :]] == [
        ("toy-case#8", "claims", "zh", "玩具案例\n已被否定：降级就好"),
        ("toy-case#9", "claims", "en", "A toy case\nContradicted: An older release helps."),
    ]
    text = CASE.replace("fixes:\n", CLAIM)
    assert plain.digest == hashlib.sha256(CASE.encode()).hexdigest()
    assert entry.digest == hashlib.sha256(f"claims\n{text}".encode()).hexdigest()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("---\nid: toy-case", "id: toy-case", "no front matter"),
        ("project: owner/toy\n", "", "missing required field `project`"),
        ("stage: train", "stage: training", "stage: 'training' is not one of init, data, train"),
        (
            "status: confirmed\nfirst",
            "status: sure\nfirst",
            "status: 'sure' is not one of",
        ),
        ("id: toy-case", "id: toy_case", "is not the file's name"),
        ("## 根因\n数据不等。\n", "", "'## 根因' is missing or empty"),
        ("# en\n", "# english\n", "unknown part '# english'"),
        ("## Cause", "## Reason", "unknown section '## Reason'"),
        ("## How to verify", "## How it was found\nBy luck.\n## How to verify", "twins"),
        (
            "backend: nccl",
            "backend: nccl\nbackand: x",
            "backand: unknown field",
        ),
        ("    status: confirmed\n---", "    hardware: x\n---", "fixes[0].hardware: unknown field"),
        ("title: {zh: 玩具案例", "title: {zn: 玩具案例", "zh"),
        ("first_seen: 2024-06-18", "first_seen: [", "not YAML"),
    ],
    ids=[
        "no-front-matter",
        "field-missing",
        "stage",
        "status",
        "id",
        "section-missing",
        "language-missing",
        "section-unknown",
        "not-twins",
        "field-unknown",
        "inner-field-unknown",
        "one-language-title",
        "yaml",
    ],
)
def test_what_is_missing_is_said_in_plain_words(old: str, new: str, says: str) -> None:
    """The message names the file and the field, section or value at fault."""
    assert old in CASE
    with pytest.raises(DataError) as caught:
        parse_case(CASE.replace(old, new, 1), name="toy-case.md")
    assert says in str(caught.value)
    assert "toy-case.md" in str(caught.value)


CHINESE = CASE[: CASE.index("# en\n")].replace(", en: A toy case", "")
CHINESE = CHINESE.replace(", en: Fix the seed", "").replace(", en: set the seed", "")


def test_one_language_is_enough() -> None:
    """What is there stands for both; the entry tells which language it has."""
    entry = parse_case(CHINESE, name="toy-case.md")
    assert entry.language == "zh"
    assert (entry.title.zh, entry.title.en) == ("玩具案例", "玩具案例")
    assert entry.fixes[0].steps[0].en == "设种子"
    assert {section.language for section in entry.sections} == {"zh"}


def test_one_body_wants_its_own_language() -> None:
    """A Chinese body with an English title alone has no title in its language."""
    text = CHINESE.replace("title: {zh: 玩具案例", "title: {en: A toy case")
    with pytest.raises(DataError, match=r"line 3.*zh"):
        parse_case(text, name="toy-case.md")


def test_what_is_still_to_be_written_is_refused() -> None:
    """A skeleton is no case until every place is filled in; the word elsewhere is a word."""
    text = CASE.replace("project: owner/toy", "project: TODO").replace("Run it again.", "TODO run")
    assert [error.what for error in places_to_do(text, "toy-case.md")] == [
        "toy-case.md line 4: project still says TODO",
        "toy-case.md line 37: still says TODO",
    ]
    with pytest.raises(DataError, match="line 4: project still says TODO"):
        parse_case(text, name="toy-case.md")
    parse_case(CASE.replace("Run it again.", "The TODO of the loader."), name="toy-case.md")


def test_a_case_is_checked_alone(tmp_path: Path) -> None:
    """Its cause, its addresses and the length of its titles; the knowledge is not loaded."""
    path = tmp_path / "toy-case.md"
    text = CASE.replace("cause: uneven-data", "cause: uneven-date").replace("https", "ftp")
    path.write_text(text.replace("A toy case", "A toy case " * 11), encoding="utf-8")
    assert [error.what for error in check_case(path, shipped_data())] == [
        "toy-case.md: cause: 'uneven-date' is no cause",
        "toy-case.md: sources: 'ftp://example.org/issues/1' is no address",
        "toy-case.md: the title in en has 120 characters",
    ]


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    """A file that is not UTF-8 is refused by name."""
    path = tmp_path / "toy-case.md"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="toy-case"):
        load_case(path)


CASES = sorted((shipped_data() / "cases").glob("*.md"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_shipped_cases_keep_the_schema(path: Path) -> None:
    """Every shipped case loads, names sources by address and stays bilingual in like length."""
    entry = load_case(path)
    assert [s.url for s in entry.sources if not s.url.startswith("https://")] == []
    sizes = {"zh": 0, "en": 0}
    for section in entry.sections:
        sizes[section.language] += len(section.text)
    # A Chinese text takes about a third of the characters of its English twin.
    assert 0.18 < sizes["zh"] / sizes["en"] < 0.75
    assert "NCCL_TIMEOUT=" not in " ".join(c for fix in entry.fixes for c in fix.commands)


def test_the_shipped_knowledge_is_consistent() -> None:
    """All files load, ids are unique and every cause named exists."""
    knowledge = read_knowledge(shipped_data())
    assert len(knowledge.cases) == len(CASES)
    named = {claim.id for case in knowledge.cases for claim in case.causes}
    assert named <= set(knowledge.cause_by_id)
