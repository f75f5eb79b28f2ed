"""What a person's words alone say of an incident: what kind of job, how large, when it hung, how.

Nothing is concluded: a headline of words says no more than they do.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from kb.diagnose.signals import Signal
from kb.knowledge.labels import Words
from kb.types.incident import Incident, LogReading
from kb.types.knowledge import Framework
from kb.types.vocabulary import Polarity

MOST_GPUS = 1024  # larger numbers beside "GPUs" are models: RTX 3090 GPUs
MOST_WORDS = 15
QUOTE_CELLS = 60  # of a person's words; a Chinese character takes two
_NUMBERS = {
    "two": 2,
    "three": 3,
    "four": 4,
    "eight": 8,
    "两": 2,
    "双": 2,
    "三": 3,
    "四": 4,
    "八": 8,
}
_NUMBER = rf"(?P<number>[0-9]{{1,4}}|{'|'.join(_NUMBERS)})"
_GPUS = (
    re.compile(rf"(?i)(?<![\w.-]){_NUMBER}[ x×*-]{{0,3}}(?:[\w-]{{1,12}} ){{0,3}}(?:GPU|NPU)s?\b"),
    re.compile(
        r"(?i)(?<![\w.])(?P<number>[0-9]{1,4}) ?[x×*] ?(?:A|H|B|V|L|GB|MI|(?:RTX|GTX) ?)[0-9]{2,4}"
    ),
    re.compile(rf"(?<![0-9.]){_NUMBER} ?(?:张|块|个)?(?:显?卡|GPU)(?![死住主顿在])"),
)
_NODES = (
    re.compile(
        rf"(?i)(?<![\w.]){_NUMBER}[ -](?:[\w-]{{1,12}} )?(?:nodes?|machines?|hosts|servers)\b"
    ),
    re.compile(rf"(?<![0-9.]){_NUMBER} ?(?:台|个?节点|机)"),
)
_OPERATION = re.compile(
    r"(?i)\b(?:_?all[-_ ]?reduce|_?all[-_ ]?gather(?:_base|_into_tensor)?|_?reduce[-_ ]?scatter"
    r"(?:_base)?|all[-_ ]?to[-_ ]?all(?:_base)?|send/recv|barrier)\b"
)
_SENTENCE = re.compile(r"\n|(?<=[.?!])\s|[。？！；;]")
_HUNG = re.compile(
    r"(?i)hang|hung|stuck|freez|froze|stall|dead-?lock|wedge|wait|stops|not (?:start|progress)"
    r"|卡[住死主在顿着]|卡不动|夯|挂[住起]|停[住在滞]|死锁|不动|等待"
)
_TIMED_OUT = re.compile(r"(?i)time[ds]?[ -]?out|timing out|超时")
_ORDINARY = frozenset(
    {"accelerate", "dynamo", "ray", "swift"}
)  # frameworks with names that are words


def words_headline(
    reading: LogReading,
    signals: Sequence[Signal],
    frameworks: Sequence[Framework],
    words: Words,
) -> str:
    """The job, when it hung, and what else the words tell, in at most `MOST_WORDS` words."""
    cues = _cues(signals)
    job = _job(reading, cues, frameworks, words)
    moment = _moment(reading, cues, words)
    how = _verb(reading.words)
    text = words(f"headline.{how}", job=job, moment=moment) if moment else ""
    text = text or words(f"headline.{how}_bare", job=job)
    for symptom in _labelled((f"cue_symptom.{cue}" for cue in cues), words):
        longer = words("headline.join").join((text, symptom))
        if len(longer.split()) <= MOST_WORDS:
            return longer
    return text if moment else _quoting(text, reading.words, words)


def _quoting(text: str, report: str, words: Words) -> str:
    """Where little else is known: with the person's own words about it, as far as they fit."""
    sentences = [one for one in _SENTENCE.split(report) if one.strip()]
    sentence = next(filter(_says_so, sentences), "".join(sentences[:1]))
    room = MOST_WORDS - len(text.split())
    told = sentence.rstrip(" .").split()
    quote = _cut(" ".join(told[:room]), whole=len(told) <= room)
    return words("headline.quoting", what=text, quote=quote) if quote else text


def moment_of(incident: Incident, words: Words) -> str:
    """When it hung, by the stage of the run; empty in training, which is the usual one."""
    named = incident.stage not in ("unknown", "train")
    return words(f"stage_moment.{incident.stage}") if named else ""


def _cut(text: str, *, whole: bool) -> str:
    """`text` at the width of a headline, with an ellipsis where something is missing."""
    widths = itertools.accumulate(1 if char.isascii() else 2 for char in text)
    end = sum(1 for width in widths if width <= QUOTE_CELLS)
    return text if whole and end == len(text) else text[:end].rstrip(" ,;:，；：") + "…"


def _cues(signals: Iterable[Signal]) -> list[str]:
    """The cues that the words state, as their labels call them, the strongest first."""
    stated = [
        (-max(map(abs, signal.weights.values()), default=0.0), signal.name)
        for signal in signals
        if signal.name.startswith("cue:cue-")
        and signal.polarity in (Polarity.TROUBLE, Polarity.HELPED)
    ]
    return [name.removeprefix("cue:cue-").replace("-", "_") for _, name in sorted(stated)]


def _labelled(names: Iterable[str], words: Words) -> list[str]:
    return [words(name) for name in names if words.has(name)]


def _moment(reading: LogReading, cues: Sequence[str], words: Words) -> str:
    """When it hung: by the call, the words, the stage, the operation."""
    facts = _labelled((f"fact_moment.{fact.name}" for fact in reading.incident.facts), words)
    told = facts or _labelled((f"cue_moment.{cue}" for cue in cues), words)
    if told:
        return told[0]
    if stage := moment_of(reading.incident, words):
        return stage
    for sentence in filter(_says_so, _SENTENCE.split(reading.words)):
        if operation := _OPERATION.search(sentence):
            return words("headline.in_op", op=operation[0])
    return words("stage_moment.train") if reading.incident.stage == "train" else ""


def _says_so(sentence: str) -> bool:
    """Whether a sentence tells of a hang or timeout."""
    return bool(_HUNG.search(sentence) or _TIMED_OUT.search(sentence))


def _verb(text: str) -> str:
    if _HUNG.search(text):
        return "hung"
    return "timed_out" if _TIMED_OUT.search(text) else "failed"


def _job(
    reading: LogReading,
    cues: Sequence[str],
    frameworks: Sequence[Framework],
    words: Words,
) -> str:
    """What ran: ``the DeepSpeed job on 8 GPUs``."""
    name, is_server = _framework(reading, frameworks)
    label = "headline.server" if is_server else "headline.job_of"
    spelt = words.term("framework_name", name)
    job = words(label, framework=spelt) if name else words("headline.job")
    gpus = reading.incident.world_size or _largest(_GPUS, reading.words)
    nodes = _largest(_NODES, reading.words)
    if nodes > 1 and reading.incident.world_size:
        return words("headline.on_both", job=job, gpus=gpus, nodes=nodes)
    if gpus > 1 and nodes <= 1:  # beside nodes the words may mean those of one node
        return words("headline.on_gpus", job=job, gpus=gpus)
    if nodes > 1:
        return words("headline.on_nodes", job=job, nodes=nodes)
    if "multi_node" in cues:
        return words("headline.on_several_nodes", job=job)
    return words("headline.on_several_gpus", job=job) if "two_gpu_hang" in cues else job


def _framework(reading: LogReading, frameworks: Sequence[Framework]) -> tuple[str, bool]:
    """The framework first named, and whether it is an inference server."""
    seen = [item for item in frameworks if item.id in reading.incident.frameworks]
    named = [item for item in frameworks if item.id not in _ORDINARY]
    spelt = [
        (match.start(), item.id, item.server)
        for item in seen or named
        if (match := re.search(rf"(?i)(?<![\w/-]){item.id}(?![\w/-])", reading.words))
    ]
    if spelt:
        _, name, is_server = min(spelt)
        return name, is_server
    return next(((item.id, item.server) for item in seen), ("", False))


def _largest(expressions: Iterable[re.Pattern[str]], text: str) -> int:
    """The largest number of things named, 0 where none is."""
    found = (match["number"] for one in expressions for match in one.finditer(text))
    numbers = (_NUMBERS.get(number.lower()) or int(number) for number in found)
    return max((number for number in numbers if number <= MOST_GPUS), default=0)
