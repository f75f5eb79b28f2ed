"""Threads: GitHub's JSON and labelled records."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingest import Ingestor
from kb.types.entries import Entry
from tests.ingest.fakes import MemorySink

Import = Callable[[object], list[Entry]]
ISSUE: dict[str, Any] = {
    "title": "DDP hangs at validation",
    "html_url": "https://github.com/acme/toaster/issues/12",
    "state": "closed",
    "created_at": "2024-03-04T10:00:00Z",
    "user": {"login": "bob"},
    "body": "### Describe the bug\r\n\r\nAll ranks hang when evaluation starts.\r\n\r\n"
    "### Environment\r\n\r\nPyTorch version: 2.1.2, NCCL version 2.18.1, 8x A100",
    "comments": [
        {"user": {"login": "eve"}, "body": "Any update? I have not solved it either."},
        {
            "user": {"login": "ann"},
            "body": "Each rank had a different number of batches. "
            "Setting `drop_last=True` fixed it.\n\n```python\nSampler(drop_last=True)\n```",
        },
    ],
}
RECORD: dict[str, Any] = {
    "id": "acme__toaster__7",
    "url": "https://github.com/acme/toaster/issues/7",
    "repo": "acme/toaster",
    "title": "hang",
    "date": "2024-02",
    "lang": "en",
    "confidence": "likely",
    "cause": "uneven-data",
    "also": ["collective-mismatch"],
    "confirm_quote": "that was it",
    "root_cause": "One rank had a batch more.",
    "fix": "Drop the last batch.",
    "query_log": "[rank0]: hang",
    "query_text": "It hangs at the end of the epoch.",
    "framework": ["pytorch", "FSDP"],
    "ops": ["ALLREDUCE"],
    "backend": "nccl",
    "stage": "train",
}


@pytest.fixture
def read(ingestor: Ingestor, sink: MemorySink, tmp_path: Path) -> Import:
    """Imports a value as a JSON file; gives what is stored then."""

    def read(value: object) -> list[Entry]:
        path = tmp_path / "thread.json"
        path.write_text(json.dumps(value))
        assert ingestor.ingest_paths([path]).refused == ()
        return list(sink.iter_entries())

    return read


def test_issue(read: Import) -> None:
    """Body sections keep their roles, the comment that tells the fix becomes one, unverified."""
    (entry,) = read(ISSUE)
    assert (entry.kind, entry.project, entry.date, entry.author) == (
        "thread",
        "acme/toaster",
        "2024-03-04",
        "bob",
    )
    assert [(s.role, s.title) for s in entry.sections] == [
        ("symptoms", "Describe the bug"),
        ("background", "Environment"),
        ("other", "Comment · eve"),
        ("fixes", "Comment · ann"),
    ]
    assert [(claim.id, claim.status) for claim in entry.causes] == [("uneven-data", "unverified")]
    assert [fix.commands for fix in entry.fixes] == [("Sampler(drop_last=True)",)]
    assert entry.tags.versions == {"torch": "2.1.2", "nccl": "2.18.1"}
    assert (entry.tags.stage, entry.tags.hardware) == ("eval", ("a100",))


@pytest.mark.parametrize(("state", "resolved"), [("open", False), ("CLOSED", True), (None, False)])
def test_an_issue_is_resolved_when_closed(state: str | None, resolved: bool, read: Import) -> None:
    """Only a closed issue counts as resolved."""
    (entry,) = read({**ISSUE, "state": state})
    assert entry.resolved is resolved


@pytest.mark.parametrize(
    "comments", [3, None, [], ["text only"], [None, 5, {"body": None}], "x"], ids=repr
)
def test_comments_of_any_shape(comments: object, read: Import) -> None:
    """GitHub's number of comments, texts and broken ones are read as far as they go."""
    (entry,) = read({**ISSUE, "comments": comments})
    said = [s.text for s in entry.sections if s.title.startswith("Comment")]
    assert said == (["text only"] if comments == ["text only"] else [])


def test_command_line_shape(read: Import) -> None:
    """What `gh issue view --json` prints: other names of the same fields, an API address."""
    issue = {key: ISSUE[key] for key in ("title", "body", "comments")}
    url = "https://api.github.com/repos/acme/toaster/issues/12"
    made = "2024-03-04T10:00:00Z"
    (entry,) = read({**issue, "url": url, "createdAt": made, "author": {"login": "bob"}})
    assert (entry.url, entry.date, entry.author) == (ISSUE["html_url"], "2024-03-04", "bob")


def test_list_of_issues(read: Import) -> None:
    """A file may hold a list; an address that stands twice is taken once."""
    other = {**ISSUE, "html_url": "https://github.com/acme/toaster/issues/13"}
    entries = read([ISSUE, other, {**ISSUE, "title": "edited"}])
    assert sorted((entry.url[-2:], entry.title.en) for entry in entries) == [
        ("12", ISSUE["title"]),
        ("13", ISSUE["title"]),
    ]


@pytest.mark.parametrize(
    ("confidence", "status"),
    [("confirmed", "confirmed"), ("likely", "reported"), ("", "unverified")],
)
def test_labelled_record(confidence: str, status: str, read: Import) -> None:
    """A record's cause has the standing of its confidence, its text stands in its sections."""
    (entry,) = read({**RECORD, "confidence": confidence})
    assert [(claim.id, claim.status) for claim in entry.causes] == [
        ("uneven-data", status),
        ("collective-mismatch", "reported"),
    ]
    assert (entry.status, entry.fixes[0].status, entry.claims[0].status) == (status,) * 3
    assert [(s.role, s.text) for s in entry.sections] == [
        ("symptoms", RECORD["query_text"]),
        ("symptoms", "```\n[rank0]: hang\n```"),
        ("causes", RECORD["root_cause"]),
        ("fixes", RECORD["fix"]),
    ]
    assert (entry.project, entry.date) == ("acme/toaster", "2024-02")
    assert entry.tags.frameworks == ("pytorch", "fsdp")
    assert entry.sources[0].confirms == "that was it"
