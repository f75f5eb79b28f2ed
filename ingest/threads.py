"""Issue threads as JSON: GitHub's shape (title, body, comments) and labelled records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from ingest.cleaning import drop_furniture, iso_date, tidy, web_address
from ingest.phrases import Phrases
from ingest.reading import MIB, clean_text, unreadable
from ingest.sections import split_parts
from ingest.tags import project_of
from ingest.types import Document, LogReader, Part, Redact
from ingest.wordlists import WordLists
from ingest.writeups import both, cause_claims, document_entry, fixes_of
from kb.errors import InputError
from kb.types import Claim, ClaimStatus, Entry, Source, Stage

MAX_RECORD_BYTES = 16 * MIB  # the longest issues have 1 MiB; more is not a thread
MAX_COMMENTS = 200  # read of one thread
_STATUS: Mapping[str, ClaimStatus] = {"confirmed": "confirmed", "likely": "reported"}
_STAGES = ("init", "data", "train", "eval", "save", "load", "inference")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One JSON object of a file: its line (0 in a file that is one value), itself, or a fault."""

    line: int
    value: Mapping[str, Any]
    digest: str
    fault: InputError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadReader:
    """Makes entries of thread records."""

    words: WordLists
    reader: LogReader
    redact: Redact
    phrases: Phrases

    def entry(self, record: Record, *, key: str) -> Entry:
        """The entry of one record; `key` names the file, for records without an address.

        Raises:
            InputError: the record has neither shape.
        """
        value = _redacted(record.value, self.redact)
        if "cause" in value and ("query_text" in value or "root_cause" in value):
            return self._labelled(value, record, key)
        if isinstance(value.get("title"), str) and isinstance(value.get("body", ""), str | None):
            return self._issue(value, record, key)
        raise InputError(
            "is no thread: neither title and body nor query_text and cause",
            todo="save issues with `gh issue view N --json title,body,comments,url`",
            reason="no_thread",
        )

    def _labelled(self, value: Mapping[str, Any], record: Record, key: str) -> Entry:
        zh = str(value.get("lang", "")) == "zh"
        texts = [
            ("symptoms", "现象" if zh else "Symptom", _text(value, "query_text")),
            ("symptoms", self.phrases.log.zh if zh else self.phrases.log.en, _log(value)),
            ("causes", "根因" if zh else "Cause", _text(value, "root_cause")),
            ("fixes", "解决" if zh else "Fix", _text(value, "fix")),
        ]
        parts = tuple(
            Part(role=role, title=title, lines=tuple(tidy(text)))
            for role, title, text in texts
            if text.strip()
        )
        url = web_address(_text(value, "url"))
        status = _STATUS.get(_text(value, "confidence"), "unverified")
        document = Document(
            title=_text(value, "title"),
            lines=(),
            date=iso_date(_text(value, "date")),
            url=url,
            project=_text(value, "repo") or project_of("", url),
        )
        name = _text(value, "id")
        entry = self._entry(document, parts, f"{url}#{name}" if name else url or key, record)
        ids = (_text(value, "cause"), *_strings(value, "also"))
        claims = (
            Claim(about="cause", text=both(_text(value, "root_cause")), status=status, source=url),
        )
        return replace(
            entry,
            language="zh" if zh else "en",
            status=status,
            causes=cause_claims(ids[:1], status, url) + cause_claims(ids[1:], "reported", url),
            fixes=fixes_of(parts, entry.id, url, status=status),
            claims=claims if claims[0].text.en else (),
            sources=(Source(url=url, confirms=_text(value, "confirm_quote")),) if url else (),
            tags=replace(
                entry.tags,
                frameworks=tuple(
                    dict.fromkeys(
                        (
                            *(name.lower() for name in _strings(value, "framework")),
                            *entry.tags.frameworks,
                        )
                    )
                ),
                backend=_text(value, "backend") or entry.tags.backend,
                ops=_strings(value, "ops") or entry.tags.ops,
                stage=_stage(value) or entry.tags.stage,
            ),
        )

    def _issue(self, value: Mapping[str, Any], record: Record, key: str) -> Entry:
        url = web_address(_text(value, "html_url") or _web(_text(value, "url")))
        body = drop_furniture(tidy(_text(value, "body")), self.words)
        parts = list(split_parts(body, words=self.words, default="symptoms"))
        # an issue's headings come from a form: what it says about causes is a guess of the asker
        for comment in _comments(value):
            lines = drop_furniture(tidy(_text(comment, "body")), self.words)
            if any(line.strip() for line in lines):
                title = f"{self.phrases.comment.en} · {_author(comment)}".rstrip(" ·")
                role = "fixes" if self._tells_fix(lines) else "other"
                parts.append(Part(role=role, title=title, lines=tuple(lines)))
        if not parts:
            raise InputError(
                "is a thread without text",
                todo="save it with body and comments",
                reason="empty_thread",
            )
        document = Document(
            title=_text(value, "title"),
            lines=(),
            author=_author(value),
            date=iso_date(_text(value, "created_at") or _text(value, "createdAt")),
            url=url,
        )
        entry = self._entry(document, parts, url or f"{key}:{record.line}", record)
        return replace(entry, resolved=_text(value, "state").lower() == "closed")

    def _tells_fix(self, lines: Sequence[str]) -> bool:
        """Whether a comment says what ended the problem, and not that nothing did."""
        said = [line for line in lines if not line.startswith(">")]
        return any(
            self.words.solved.search(line) and not self.words.unsolved.search(line) for line in said
        )

    def _entry(self, document: Document, parts: Sequence[Part], key: str, record: Record) -> Entry:
        return document_entry(
            document,
            parts,
            kind="thread",
            key=key,
            digest=record.digest,
            words=self.words,
            reader=self.reader,
        )


def read_json(path: Path, text: str) -> Iterator[Record]:
    """The records of a file that is one JSON value: an object or a list of them.

    Raises:
        InputError: it is not JSON.
    """
    value = _parsed(text, path.name)
    for number, item in enumerate(value if isinstance(value, list) else [value]):
        raw = json.dumps(item, sort_keys=True).encode()
        yield _record(item, number, hashlib.sha256(raw).hexdigest())


def read_jsonl(path: Path) -> Iterator[Record]:
    """The records of a file of JSON lines, in constant memory; a broken line is a fault.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with path.open("rb") as stream:
            number = 0
            while line := stream.readline(MAX_RECORD_BYTES + 1):
                number += 1
                if len(line) > MAX_RECORD_BYTES:
                    while line and not line.endswith(b"\n"):
                        line = stream.readline(MAX_RECORD_BYTES)
                    size = str(MAX_RECORD_BYTES // MIB)
                    fault = InputError(
                        f"the line is longer than {size} MiB",
                        todo="save fewer comments of it",
                        reason="long_line",
                        values={"size": size},
                    )
                    yield Record(line=number, value={}, digest="", fault=fault)
                elif line.strip(b"\xef\xbb\xbf \t\r\n"):
                    yield _line_record(line, number)
    except OSError as error:
        raise unreadable(error) from error


def _line_record(line: bytes, number: int) -> Record:
    try:
        value = _parsed(line.decode("utf-8-sig", "replace"), f"line {number}")
    except InputError as error:
        return Record(line=number, value={}, digest="", fault=error)
    return _record(value, number, hashlib.sha256(line.strip()).hexdigest())


def _record(value: object, number: int, digest: str) -> Record:
    if not isinstance(value, dict):
        kind = type(value).__name__
        fault = InputError(
            f"a JSON object is wanted, here is {kind}",
            todo="save the thread again",
            reason="no_object",
            values={"kind": kind},
        )
        return Record(line=number, value={}, digest="", fault=fault)
    return Record(line=number, value=cast("dict[str, Any]", value), digest=digest)


def _parsed(text: str, name: str) -> object:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise InputError(
            f"{name} is nested too deep", todo="save the thread again", reason="too_deep"
        ) from error
    except ValueError as error:
        raise InputError(
            f"{name} is not JSON: {error}",
            todo="save the thread again",
            reason="no_json",
            values={"why": str(error)},
        ) from error


def _redacted(value: Any, redact: Redact, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
    """`value` with its texts cleaned and their secrets removed; deeper levels are not used."""
    if isinstance(value, str):
        return redact(clean_text(value))[0]
    if depth > 4:
        return None
    if isinstance(value, dict):
        return {str(key): _redacted(item, redact, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_redacted(item, redact, depth + 1) for item in value]
    return value


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    return found.strip() if isinstance(found, str) else ""


def _strings(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = value.get(name)
    return tuple(item for item in found if isinstance(item, str)) if isinstance(found, list) else ()


def _log(value: Mapping[str, Any]) -> str:
    log = _text(value, "query_log")
    return f"```\n{log}\n```" if log else ""


def _stage(value: Mapping[str, Any]) -> Stage | None:
    stage = _text(value, "stage")
    return cast("Stage", stage) if stage in _STAGES else None


def _comments(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Comments as objects; GitHub's list answers with a number where there is none to read."""
    found = value.get("comments")
    if not isinstance(found, list):
        return []
    objects = [{"body": item} if isinstance(item, str) else item for item in found[:MAX_COMMENTS]]
    return [item for item in objects if isinstance(item, dict)]


def _author(value: Mapping[str, Any]) -> str:
    for name in ("user", "author"):
        who = value.get(name)
        if isinstance(who, dict):
            return _text(who, "login")
        if isinstance(who, str):
            return who
    return ""


def _web(url: str) -> str:
    """The page of an address of GitHub's API."""
    return url.replace("https://api.github.com/repos/", "https://github.com/")
