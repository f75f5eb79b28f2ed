"""Issue threads as JSON: GitHub's shape (title, body, comments) and labelled records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from ingest.clean import drop_furniture, iso_date, tidy, web_address
from ingest.files import MIB, read_page, source_key, unreadable
from ingest.sections import section_of, split_sections
from ingest.tags import project_of
from ingest.types import Document, Format, ImportTools, refusal
from ingest.wordlists import WordLists
from ingest.writeups import both, cause_claims, document_entry, fixes_of
from kb.errors import InputError, KBError
from kb.files.decode import clean_text
from kb.text.redact import redact
from kb.types.entries import Claim, Entry
from kb.types.knowledge import Source
from kb.types.vocabulary import ClaimStatus, Stage

MAX_RECORD_BYTES = 16 * MIB  # the longest issues have 1 MiB; more is not a thread
MAX_COMMENTS = 200  # read of one thread
_STATUS: Mapping[str, ClaimStatus] = {"confirmed": "confirmed", "likely": "reported"}
_STAGES = ("init", "data", "train", "eval", "save", "load", "inference")


def _one_value(path: Path, tools: ImportTools) -> Iterator[Entry]:
    """The threads of a file that is one JSON value: an object or a list of them."""
    value = _parsed(read_page(path, tools.notes), path.name)
    for number, item in enumerate(value if isinstance(value, list) else [value]):
        raw = json.dumps(item, sort_keys=True).encode()
        with _refusals(path, tools, str(path)):
            yield _thread(item, raw, source_key(path), number, tools)


def _lines(path: Path, tools: ImportTools) -> Iterator[Entry]:
    """The threads of a file of JSON lines, in constant memory; a broken line is refused alone."""
    key, number = source_key(path), 0
    try:
        with path.open("rb") as stream:
            while line := stream.readline(MAX_RECORD_BYTES + 1):
                number += 1
                with _refusals(path, tools, f"{path}:{number}"):
                    if len(line) > MAX_RECORD_BYTES:
                        raise _too_long(line, stream)
                    if line.strip(b"\xef\xbb\xbf \t\r\n"):
                        value = _parsed(line.decode("utf-8-sig", "replace"), f"line {number}")
                        yield _thread(value, line.strip(), key, number, tools)
    except OSError as error:
        raise unreadable(error) from error


@contextmanager
def _refusals(path: Path, tools: ImportTools, place: str) -> Iterator[None]:
    """Write down that a record is refused, so that the others are taken."""
    try:
        yield
    except KBError as error:
        tools.refused.append(refusal(place, error, path))


def _too_long(line: bytes, stream: BinaryIO) -> InputError:
    """That a line is too long; the rest of it is passed over."""
    while line and not line.endswith(b"\n"):
        line = stream.readline(MAX_RECORD_BYTES)
    size = str(MAX_RECORD_BYTES // MIB)
    return InputError(
        f"the line is longer than {size} MiB",
        todo="save fewer comments of it",
        reason="long_line",
        values={"size": size},
    )


def _thread(value: object, raw: bytes, key: str, number: int, tools: ImportTools) -> Entry:
    """The entry of a JSON value; `raw` gives its digest, `key` and `number` its name.

    Raises:
        InputError: it is no object, has neither shape of a thread, or no text.
    """
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise InputError(
            f"a JSON object is wanted, here is {kind}",
            todo="save the thread again",
            reason="no_object",
            values={"kind": kind},
        )
    thread: Mapping[str, Any] = _redacted(value)
    digest = hashlib.sha256(raw).hexdigest()
    if "cause" in thread and ("query_text" in thread or "root_cause" in thread):
        return _labelled(thread, digest, key, tools)
    if isinstance(thread.get("title"), str) and isinstance(thread.get("body", ""), str | None):
        return _issue(thread, digest, f"{key}:{number}", tools)
    raise InputError(
        "is no thread: neither title and body nor query_text and cause",
        todo="save issues with `gh issue view N --json title,body,comments,url`",
        reason="no_thread",
    )


def _labelled(value: Mapping[str, Any], digest: str, key: str, tools: ImportTools) -> Entry:
    """A record with the cause that readers agreed on."""
    zh = _text(value, "lang") == "zh"
    phrases = tools.words.phrases
    log, cause = _text(value, "query_log"), _text(value, "root_cause")
    texts = [
        ("symptoms", "现象" if zh else "Symptom", _text(value, "query_text")),
        ("symptoms", phrases.log.zh if zh else phrases.log.en, f"```\n{log}\n```" if log else ""),
        ("causes", "根因" if zh else "Cause", cause),
        ("fixes", "解决" if zh else "Fix", _text(value, "fix")),
    ]
    sections = [section_of(role, title, tidy(text)) for role, title, text in texts if text]
    url, name = web_address(_text(value, "url")), _text(value, "id")
    status = _STATUS.get(_text(value, "confidence"), "unverified")
    document = Document(
        title=_text(value, "title"),
        lines=(),
        date=iso_date(_text(value, "date")),
        url=url,
        project=_text(value, "repo") or project_of("", url),
    )
    key = f"{url}#{name}" if name else url or key
    entry = document_entry(document, sections, tools, kind="thread", key=key, digest=digest)
    also = cause_claims(_strings(value, "also"), "reported", url)
    claim = Claim(about="cause", text=both(cause), status=status, source=url)
    frameworks = map(str.lower, _strings(value, "framework"))
    stage = _text(value, "stage")
    return replace(
        entry,
        language="zh" if zh else "en",
        status=status,
        causes=cause_claims((_text(value, "cause"),), status, url) + also,
        fixes=fixes_of(sections, entry.id, url, status=status),
        claims=(claim,) if cause else (),
        sources=(Source(url=url, confirms=_text(value, "confirm_quote")),) if url else (),
        tags=replace(
            entry.tags,
            frameworks=tuple(dict.fromkeys((*frameworks, *entry.tags.frameworks))),
            backend=_text(value, "backend") or entry.tags.backend,
            ops=_strings(value, "ops") or entry.tags.ops,
            stage=cast("Stage", stage) if stage in _STAGES else entry.tags.stage,
        ),
    )


def _issue(value: Mapping[str, Any], digest: str, key: str, tools: ImportTools) -> Entry:
    """An issue with its comments, as GitHub gives it."""
    words = tools.words
    url = web_address(_text(value, "html_url") or _web(_text(value, "url")))
    body = drop_furniture(tidy(_text(value, "body")), words)
    sections = list(split_sections(body, words=words, default="symptoms"))
    # an issue's headings come from a form: what it says about causes is a guess of the asker
    for comment in _comments(value):
        lines = drop_furniture(tidy(_text(comment, "body")), words)
        if any(line.strip() for line in lines):
            title = f"{words.phrases.comment.en} · {_author(comment)}".rstrip(" ·")
            role = "fixes" if _tells_fix(lines, words) else "other"
            sections.append(section_of(role, title, lines))
    if not sections:
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
    entry = document_entry(document, sections, tools, kind="thread", key=url or key, digest=digest)
    return replace(entry, resolved=_text(value, "state").lower() == "closed")


def _tells_fix(lines: Sequence[str], words: WordLists) -> bool:
    """Whether a comment says what ended the problem, and not that nothing did."""
    own = [line for line in lines if not line.startswith(">")]
    return any(
        words.signs.solved.search(line) and not words.signs.unsolved.search(line) for line in own
    )


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


def _redacted(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
    """`value` with its texts cleaned and their secrets removed; deeper levels are not used."""
    if isinstance(value, str):
        return redact(clean_text(value))[0]
    if depth > 4:
        return None
    if isinstance(value, dict):
        return {str(key): _redacted(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_redacted(item, depth + 1) for item in value]
    return value


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    return text.strip() if isinstance(text, str) else ""


def _strings(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    items = value.get(name)
    return tuple(item for item in items if isinstance(item, str)) if isinstance(items, list) else ()


def _comments(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Comments as objects; GitHub's list answers with a number where there is none to read."""
    comments = value.get("comments")
    if not isinstance(comments, list):
        return []
    read = comments[:MAX_COMMENTS]
    objects = [{"body": item} if isinstance(item, str) else item for item in read]
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


def _is_object(head: str, _words: WordLists) -> bool:
    start = head.lstrip("\ufeff \t\r\n")
    return start.startswith("{") and '"' in start[:64]


JSON = Format(read=_one_value, suffixes=frozenset({".json"}))
JSON_LINES = Format(read=_lines, suffixes=frozenset({".jsonl", ".ndjson"}), recognises=_is_object)
