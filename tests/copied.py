"""Find runs of words that a text shares with other people's prose.

A run is `ENGLISH_RUN` consecutive English words or `HAN_RUN` consecutive Chinese characters without
punctuation between them. What software prints may be quoted, so runs that stand in logs are no
copies; neither are code, commands, URLs and quoted fragments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kb.knowledge.load import Knowledge

ENGLISH_RUN = 8
HAN_RUN = 12

_CODE = re.compile(r"```.*?```|`[^`\n]*`|https?://\S+", re.DOTALL)
_BREAK = re.compile(r"[.,;:!?()\[\]{}<>|\"“”«»=/\\\n\t]+|\s[-–—]\s")
_WORD = re.compile(r"[A-Za-z][\w'’-]*")  # an identifier is one word
_HAN = re.compile(rf"[\u4e00-\u9fff]{{{HAN_RUN},}}")
# A line of a pasted log: glog and c10d headers, tracebacks, key=value, paths, many digits.
_LOG_LINE = re.compile(
    r"\[(?:rank)?\d*\]:|\[[EWIF]\d|Traceback|File \"|NCCL (?:INFO|WARN)|Error:|\w+\(\w+=|::"
    r"|\d{4}-\d\d-\d\d|terminate called|what\(\):"
)


def english_runs(text: str) -> Iterator[str]:
    """Every run of `ENGLISH_RUN` words of `text`, lower case, joined by one space."""
    for piece in _BREAK.split(_CODE.sub("\n", text)):
        words = [word.lower() for word in _WORD.findall(piece)]
        for start in range(len(words) - ENGLISH_RUN + 1):
            yield " ".join(words[start : start + ENGLISH_RUN])


def han_runs(text: str) -> Iterator[str]:
    """Every run of `HAN_RUN` Chinese characters of `text`."""
    for match in _HAN.finditer(_CODE.sub("\n", text)):
        piece = match[0]
        for start in range(len(piece) - HAN_RUN + 1):
            yield piece[start : start + HAN_RUN]


def runs(text: str) -> Iterator[str]:
    """The runs of both languages."""
    yield from english_runs(text)
    yield from han_runs(text)


@dataclass(frozen=True)
class Originals:
    """The runs of other people's prose, and those that software prints."""

    prose: frozenset[str]
    software: frozenset[str]

    @classmethod
    def of(cls, prose: Iterable[str], software: Iterable[str]) -> Originals:
        """Collect the runs of texts of both kinds."""
        return cls(
            prose=frozenset(run for text in prose for run in runs(text)),
            software=frozenset(run for text in software for run in runs(text)),
        )

    def copied(self, text: str) -> list[str]:
        """The runs of `text` that stand in the prose, in their order, each once."""
        seen = dict.fromkeys(runs(text))
        return [run for run in seen if run in self.prose and run not in self.software]


def without_log_lines(text: str) -> str:
    """A person's words: `text` without the lines that look like program output."""
    return "\n".join(line for line in text.splitlines() if not _LOG_LINE.search(line))


def shared_originals(shared: Path, knowledge: Knowledge) -> Originals:
    """The prose of the threads and the seed pages; logs and pattern examples are software."""
    prose: list[str] = []
    software = [example for pattern in knowledge.patterns for example in pattern.examples]
    with (shared / "threads" / "threads.jsonl").open(encoding="utf-8") as file:
        for line in file:
            thread = json.loads(line)
            fields = (thread[key] for key in ("title", "confirm_quote", "root_cause", "fix"))
            prose += [*fields, without_log_lines(thread["query_text"])]
            software.append(thread["query_log"])
    for page in sorted((shared / "seeds").glob("*.txt")):
        prose.append(without_log_lines(page.read_text(encoding="utf-8")))
    return Originals.of(prose, software)


def cause_texts(knowledge: Knowledge) -> Iterator[tuple[str, str]]:
    """(where, text) of the prose of causes.yaml, both languages."""
    for cause in knowledge.causes:
        texts = [cause.title, cause.definition, cause.restart_reason]
        texts += [*cause.shows, *cause.confirms, *cause.refutes]
        texts += [item.why for item in cause.collect]
        for fix in cause.fixes:
            texts += [fix.title, *fix.steps, *([fix.caution] if fix.caution else [])]
        for check in cause.checks:
            texts += [check.tells, *(outcome.observation for outcome in check.outcomes)]
        for text in texts:
            yield cause.id, text.zh
            yield cause.id, text.en


def advice_texts(knowledge: Knowledge) -> Iterator[tuple[str, str]]:
    """(where, text) of the prose of advice.yaml, both languages."""
    for item in knowledge.advice:
        texts = [item.effect, *(rule.explanation for rule in item.rules)]
        texts += [item.risk] if item.risk else []
        for text in texts:
            yield item.id, text.zh
            yield item.id, text.en


def case_texts(knowledge: Knowledge) -> Iterator[tuple[str, str]]:
    """(where, text) of the prose of data/cases, both languages."""
    for case in knowledge.cases:
        yield from ((case.id, section.text) for section in case.sections)
        yield from ((case.id, text) for text in (case.title.zh, case.title.en))
        for fix in case.fixes:
            for text in (fix.title, *fix.steps):
                yield case.id, text.zh
                yield case.id, text.en
