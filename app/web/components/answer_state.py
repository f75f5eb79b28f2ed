"""The answer a session holds: the verdict on a log, in each language, with lines to show."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

import streamlit as st

from app.inputs.uploads import upload_folder
from app.render.escape import plain
from app.web.background import begin
from app.web.components.log_view import Window, lines_of, lines_of_chunks, marks_of, windows
from kb.diagnose.verdict import SecondOpinion, Verdict
from kb.errors import InputError
from kb.evidence.capture import unpacked_archives
from kb.evidence.detect import evidence_among
from kb.types.answer import Diagnosis
from kb.types.incident import LogReading
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from app.inputs.contributions import Feedback
    from kb.saved import SavedDiagnosis
    from kb.second_reader.asking import SecondReader
    from kb.service import Service
    from kb.settings import Settings

MIB = 1024 * 1024

Upload = tuple[str, BinaryIO]  # name and content


@dataclass(slots=True, kw_only=True)
class AnswerState:
    """A diagnosis as the session holds it.

    `origin` is what was answered at first; `answers`, of what is shown, fills up as languages are
    asked for. `pasted` is the text as it came and is shown to nobody else; `windows` are redacted.
    `saved` is there once what is shown has a link, `entry` is the id of the incident it was added
    as, `feedback` what was last said of it. `pooled` is or becomes the verdict with a language
    model's opinion, None where none was asked; `is_pooled` is whether that one is shown.
    """

    origin: Verdict | SavedDiagnosis
    pasted: str = ""
    names: tuple[str, ...] = ()
    windows: tuple[Window, ...] = ()
    answers: dict[Language, Diagnosis] = field(default_factory=dict)
    saved: SavedDiagnosis | None = None
    entry: str = ""
    feedback: Feedback | None = None
    pooled: Future[Verdict] | None = None
    is_pooled: bool = False

    @property
    def shown(self) -> Verdict | SavedDiagnosis:
        """What the answer shown is made of, and what is saved: the first verdict or the pooled."""
        return self.pooled.result() if self.is_pooled and self.pooled is not None else self.origin

    def answer(self, service: Service, language: Language) -> Diagnosis:
        """The diagnosis in a language; a saved one as it was given then."""
        if language not in self.answers:
            self.answers[language] = (
                service.render(self.shown, language=language)
                if isinstance(self.shown, Verdict)
                else self.shown.answer(language)
            )
        return self.answers[language]

    def read_along(self, reader: SecondReader, verdict: Verdict) -> Verdict | None:
        """The verdict with the model's opinion or why there is none; None while it reads.

        It is asked once, whatever comes of it, so that one that fails is not asked at every look.
        """
        if self.pooled is None:
            failed = SecondOpinion(model=reader.model, why="failed", trust=reader.trust)
            otherwise = replace(verdict, second=failed)
            self.pooled = begin(partial(reader.read, verdict), otherwise=otherwise)
        return self.pooled.result() if self.pooled.done() else None

    def show_pooled(self, is_pooled: bool) -> None:
        """Show the answer with the model's opinion or without; a link there is of the other."""
        self.is_pooled = is_pooled
        self.answers.clear()
        self.saved = None

    @property
    def reading(self) -> LogReading:
        """What was read."""
        return self.origin.reading

    @property
    def has_log(self) -> bool:
        """Whether the log itself is at hand, not only what was saved of it."""
        return bool(self.pasted or self.names)


def diagnose_input(
    service: Service,
    *,
    text: str,
    uploads: Sequence[Upload] = (),
    torch: str = "",
    language: Language,
) -> AnswerState:
    """Read a paste and uploaded files as one run, diagnose it, and cut out what is worth seeing.

    Raises:
        InputError: there is nothing to read, or too much, or a file is no log.
    """
    with uploaded(text, uploads, service.settings) as paths:
        reading = service.read_paths(paths) if uploads else service.read_text(text)
        verdict = service.judge(reading, torch=torch or None)
        answer = service.render(verdict, language=language)
        with contextlib.ExitStack() as stack:
            files = unpacked_archives(paths, stack)
            evidence = evidence_among(files)
            logs = [path for path in files if path.is_file() and path not in evidence]
            lines = {path.name if len(logs) > 1 else "": _file_lines(path) for path in logs}
            shown = windows(lines if uploads else {"": lines_of(text)}, marks_of(answer, reading))
        return AnswerState(
            origin=verdict,
            pasted=text,
            names=tuple(plain(name) for name, _ in uploads),
            windows=shown,
            answers={language: answer},
        )


@contextlib.contextmanager
def uploaded(text: str, uploads: Sequence[Upload], settings: Settings) -> Iterator[list[Path]]:
    """Uploaded files, with the words written beside them, as files of a folder; none for none.

    Raises:
        InputError: it is too much.
    """
    check_size(text, uploads, settings)
    with upload_folder() as folder:
        if uploads and text.strip():
            folder.add_text(text)
        for upload in uploads:
            folder.add(*upload)
        yield folder.paths


def api_command(settings: Settings) -> str:
    """The command that sends a log of any size to the API."""
    return f"curl {api_address(settings)}/v1/diagnose -H 'Accept: text/plain' -T job.log"


def api_address(settings: Settings) -> str:
    """Where the API answers, for a command a visitor copies."""
    return f"http://{_reachable(settings.host)}:{settings.port}"


def _reachable(host: str) -> str:
    """The API's host in an address: where it listens on all, the one the visitor came to."""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            host = urlsplit(str(st.context.url or "")).hostname or socket.gethostname()
    return f"[{host}]" if ":" in host else host


def check_size(text: str, uploads: Sequence[Upload], settings: Settings) -> None:
    """Refuse what is better sent to the API, which reads any size in constant memory.

    Raises:
        InputError: text and files together are larger than `max_body` bytes.
    """
    limit = settings.max_body
    size = len(text.encode("utf-8", "replace"))
    for _, stream in uploads:
        size += stream.seek(0, 2)
        stream.seek(0)
    if size > limit:
        values = {"size": f"{size / MIB:.1f}", "limit": f"{limit / MIB:.1f}"}
        command = api_command(settings)
        raise InputError(
            "{size} MiB are more than the {limit} MiB this page takes".format(**values),
            todo=f"send it to the API (timeout-kb serve), which takes any size: {command}",
            reason="page_limit",
            values={**values, "curl": command},
        )


def _file_lines(path: Path) -> Iterable[str]:
    from kb.files.log_source import from_path

    return lines_of_chunks(from_path(path).chunks())
