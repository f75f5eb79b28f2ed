"""What was learned of a team's confirmed outcomes: corrections beside the shipped weights.

`timeout-kb learn` makes them (`kb.train.outcomes`). They lie in the state folder as numbered files,
the highest of which is in use; taking it away brings the former one back. Each names the knowledge
it was made for: after an update it is passed over until it is made again.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from kb.diagnose.evidence_model import WEIGHTS, Weights
from kb.diagnose.linear_model import MANIFEST
from kb.diagnose.reader import FOLDER as READER
from kb.diagnose.signals import Signal
from kb.errors import DataError
from kb.files.atomic import write_file
from kb.files.state_folder import make_state_folder
from kb.knowledge.labels import in_both_languages
from kb.knowledge.load import knowledge_digest
from kb.text.tokenizer import Tokenizer
from kb.types.incident import LogReading
from kb.types.knowledge import Bilingual

LEARNED_FORMAT = 1
FOLDER = "learned"  # of the state folder
TERM = "term:"  # signals of the team's own words begin with it
MAX_NATS = 3.0  # of a correction, either way: much other evidence still outweighs it
MAX_BYTES = 1 << 20
MAX_QUOTE = 160
LINE_CHARS = 300  # of a line of an excerpt
AGAIN = "run timeout-kb learn again, or timeout-kb learn --undo"
_NUMBERED = re.compile(r"[0-9]{4}\.json\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedWeights:
    """Corrections in nats, by name of the signal and cause.

    Attributes:
        base: digest of the shipped knowledge and weights they were made for.
        corrections: those of ``term:`` signals are of the team's own words.
        outcomes: how many outcomes they were learned from.
        checksum: SHA-256 over everything else.
    """

    format: int = LEARNED_FORMAT
    base: str
    corrections: dict[str, dict[str, float]] = field(default_factory=dict)
    outcomes: int = 0
    checksum: str = ""

    @property
    def terms(self) -> tuple[str, ...]:
        """The team's own words among the signals."""
        return tuple(name.removeprefix(TERM) for name in self.corrections if name.startswith(TERM))

    def added_to(self, weights: Weights) -> Weights:
        """The shipped weights with these corrections."""
        learned = {name: dict(causes) for name, causes in weights.learned.items()}
        for name, causes in self.corrections.items():
            own = learned.setdefault(name, {})
            for cause, nats in causes.items():
                own[cause] = round(own.get(cause, 0.0) + nats, 3)
        return replace(weights, learned=learned)


def base_digest(data: Path) -> str:
    """What learned weights are made for: the shipped knowledge, weights and reader."""
    digest = hashlib.sha256(knowledge_digest(data).encode())
    for path in (data / WEIGHTS, data / READER / MANIFEST):
        try:
            digest.update(path.read_bytes())
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}", todo="reinstall the package") from error
    return digest.hexdigest()


def encoded(learned: LearnedWeights) -> bytes:
    """The bytes of a file, its checksum set; the same values give the same bytes."""
    plain = msgspec.json.encode(replace(learned, checksum=""))
    checked = replace(learned, checksum=hashlib.sha256(plain).hexdigest())
    return msgspec.json.format(msgspec.json.encode(checked), indent=1) + b"\n"


def decoded(content: bytes, *, name: str) -> LearnedWeights:
    """The values of a file.

    Raises:
        DataError: it is damaged, of another format, or holds what no `learn` writes.
    """
    try:
        learned = msgspec.json.decode(content[: MAX_BYTES + 1], type=LearnedWeights)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataError(f"{name}: {error}", todo=AGAIN) from error
    if learned.format != LEARNED_FORMAT:
        what = f"{name} has format {learned.format}, this program reads {LEARNED_FORMAT}"
        raise DataError(what, todo=AGAIN)
    plain = msgspec.json.encode(replace(learned, checksum=""))
    if learned.checksum != hashlib.sha256(plain).hexdigest():
        raise DataError(f"{name} is damaged: its checksum is another", todo=AGAIN)
    nats = [value for causes in learned.corrections.values() for value in causes.values()]
    if not all(math.isfinite(value) and abs(value) <= MAX_NATS for value in nats):
        raise DataError(f"{name} holds a weight beyond {MAX_NATS} nats", todo=AGAIN)
    return learned


def learned_files(home: Path) -> list[Path]:
    """The files of learned weights, the one in use last."""
    folder = home / FOLDER
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NUMBERED.match(path.name))


def learned_stamp(home: Path) -> tuple[str, int, int] | None:
    """Something that changes with the learned weights in use; cheap to ask."""
    try:
        path = learned_files(home)[-1]
        status = path.stat()
    except (IndexError, OSError):
        return None
    return path.name, status.st_mtime_ns, status.st_size


def load_learned(home: Path, data: Path) -> LearnedWeights | None:
    """The learned weights in use; None where nothing was learned.

    Raises:
        DataError: they are damaged, or were made for another version of the knowledge.
    """
    files = learned_files(home)
    if not files:
        return None
    path = files[-1]
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}", todo=AGAIN) from error
    learned = decoded(content, name=str(path))
    if learned.base != base_digest(data):
        raise DataError(f"{path} was made for another version of the knowledge", todo=AGAIN)
    return learned


def keep_learned(home: Path, learned: LearnedWeights) -> Path:
    """Put learned weights in use, before those in use now; returns their file.

    Raises:
        OSError: the state folder cannot be written.
    """
    make_state_folder(home)
    files = learned_files(home)
    number = int(files[-1].stem) + 1 if files else 1
    path = home / FOLDER / f"{number:04}.json"
    path.parent.mkdir(exist_ok=True)
    write_file(path, encoded(learned), durable=True)
    return path


def undo_learned(home: Path) -> Path | None:
    """Take the learned weights in use away; returns their file, None where there are none."""
    files = learned_files(home)
    if not files:
        return None
    files[-1].unlink()
    return files[-1]


class TermReader:
    """Finds the team's own words in readings."""

    def __init__(
        self, terms: Sequence[str], tokenizer: Tokenizer, labels: Mapping[str, Bilingual]
    ) -> None:
        """Look for `terms`, as the tokenizer gives them."""
        self._terms = frozenset(terms)
        self._tokenizer = tokenizer
        self._labels = labels

    def read(self, reading: LogReading) -> list[Signal]:
        """A signal of each term, at the first line that has it, in the order of terms."""
        if not self._terms:
            return []
        lines: dict[str, tuple[str, str, int]] = {}
        for text, file, line in term_lines(reading):
            for term in self._terms.intersection(self._tokenizer.tokens(text)):
                lines.setdefault(term, (text, file, line))
        return [self._signal(term, *lines[term]) for term in sorted(lines)]

    def _signal(self, term: str, text: str, file: str, line: int) -> Signal:
        return Signal(
            name=f"{TERM}{term}",
            kind="text",
            quote=text.strip()[:MAX_QUOTE],
            line=line,
            weights={},
            reason_id=term,
            source=f"{TERM}{term}",
            means=in_both_languages(self._labels, "evidence.team_term", term=term),
            file=file,
        )


def term_lines(reading: LogReading) -> list[tuple[str, str, int]]:
    """The lines terms are looked for in, with file and number: a person's, then a program's."""
    places = reading.word_places
    lines = [
        (text, *(places[number] if number < len(places) else ("", 0)))
        for number, text in enumerate(reading.words.splitlines())
    ]
    at = {event.text[:LINE_CHARS]: (event.file, event.line) for event in reading.events}
    lines += [(text, *at.get(text, ("", 0))) for text in reading.excerpt.splitlines()]
    return lines
