"""Cues: each finds its examples, denials turn around, text of any size is read in linear time."""

from __future__ import annotations

import re
import time
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.diagnose.cues import MAX_QUOTE, CueHit, CueReader
from kb.diagnose.signals import DENIED_SHARE, cue_signals, statement_signals
from kb.diagnose.statements import StatementReader, TopicStatement
from kb.knowledge.load import read_yaml
from kb.settings import shipped_data
from kb.text.polarity import MAX_TEXT, PolarityReader, TextPolarity
from kb.types.knowledge import Bilingual, Pattern, PolarityMark, Topic

CUES = read_yaml(shipped_data() / "cues.yaml", tuple[Pattern, ...])
POLARITY = PolarityReader(read_yaml(shipped_data() / "polarity.yaml", tuple[PolarityMark, ...]))
READER = CueReader(CUES)


STATEMENTS = StatementReader(read_yaml(shipped_data() / "topics.yaml", tuple[Topic, ...]))


def read(text: str, reader: CueReader = READER) -> tuple[CueHit, ...]:
    """The cues that `reader` finds in `text`, with the shipped topics and words of polarity."""
    return reader.read(*what_is_said(text))


@cache
def what_is_said(text: str) -> tuple[TextPolarity, tuple[TopicStatement, ...]]:
    """What a text remarks and states, whatever cue is looked for in it."""
    remarks = POLARITY.read(text)
    return remarks, STATEMENTS.read(remarks)


@pytest.mark.parametrize("cue", CUES, ids=lambda cue: cue.id)
def test_a_cue_finds_its_examples_and_not_its_negatives(cue: Pattern) -> None:
    """Every example is found by its cue, no negative is."""
    reader = CueReader([cue])
    assert [text for text in cue.examples if not read(text, reader)] == []
    assert [text for text in cue.negatives if read(text, reader)] == []


@pytest.mark.parametrize("cue", CUES, ids=lambda cue: cue.id)
def test_re2_reads_a_cue_as_re_does(cue: Pattern) -> None:
    """RE2 and `re` agree on all examples of all cues."""
    expression = re.compile(cue.regex, re.IGNORECASE | re.ASCII)
    reader = CueReader([cue])
    for other in CUES:
        for text in (*other.examples, *other.negatives):
            assert bool(read(text, reader)) == bool(expression.search(text)), text


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("it runs inside docker", False),
        ("it runs without docker", True),
        ("the hang is not related to the network interface", True),
        ("不是网卡的问题", True),
        ("用的是网卡 eth0", False),
    ],
    ids=["plain", "without", "not-related", "zh-not", "zh-plain"],
)
def test_a_denial_turns_a_cue_around(text: str, denied: bool) -> None:
    """What is denied right before the match counts the other way, weakly."""
    hits = [h for h in read(text) if h.cue.id in ("cue-docker", "cue-interface")]
    assert [hit.denied for hit in hits] == [denied]
    signal = cue_signals(hits)[0]
    cue = hits[0].cue
    ruled_out = cue.sound or {c: w * DENIED_SHARE for c, w in cue.causes.items()}
    assert signal.weights == (ruled_out if denied else cue.causes)


IN_ORDER = [
    "nccl-tests pass on 3 nodes",
    "nah network is fine, we ran nccl-tests",
    "nccl-tests 三个节点都正常",
    "shm is 64G so not shm",
    "shm is large enough, 64G",
    "we have enough shared memory",
    "disk is not full",
    "the network is fine",
    "it is not the network",
    "网络没问题",
    "不是网络问题",
    "没有 OOM",
    "no Xid in dmesg",
    "我们检查过网络，没有异常",
    "共享内存足够",
    "shm is 64G so cant be that",
    "it wasnt the nic",
    "没掉卡",
    "no network problems",
    "no problem with the network",
    "no errors on /dev/shm",
    "no gpu memory leak",
    "没有网络问题",
    "没有共享内存报错",
    "the network is fine but training hangs",
    "no Xid or ECC errors",
    "no Xid/ECC errors in dmesg",
    "没有 Xid、ECC 报错",
]
NOT_IN_ORDER = [
    "network is fine with 2 nodes but 3 hang",
    "nccl-tests pass on 2 nodes but hang on 3",
    "网络两台没问题，三台就卡",
    "nccl-tests never pass",
    "is the network fine?",
    "是不是网络问题",
    "not enough shm",
    "there isn't enough shared memory",
    "no space left on device in /dev/shm",
    "没有共享内存",
    "没有足够的共享内存",
    "increasing /dev/shm to 64G works",
    "关掉 shm 后正常",
    "网络不正常",
    "it never finishes",
    "dmesg shows Xid 79 on node 2 but no ECC errors",
    "no ECC errors. Later dmesg shows Xid 79",
    "no Xid but ECC errors",
    "node 2 报了 Xid 79，没有 ECC 报错",
    "there is no network connectivity",
    "no space on /dev/shm",
    "it runs without enough shared memory",
    "there is no set_device call",
    "no MASTER_ADDR is set",
    "nobody set MASTER_ADDR",
    "there is no disk space left",
    "no gpu memory left",
    "no ulimit set for memlock",
    "no hostname resolution",
    "no dataloader worker responds",
    "没有连通性",
    "没有网络连接",
    "没有 set_device",
    "没有磁盘空间了",
    "nccl-tests pass up to 8 gpus, then hang",
    "gpu memory is enough at first and then runs out",
    "disk is not full but very slow",
    "磁盘没满，但是很慢",
    "显存一开始足够，后来就不够了",
]
NCCL = Pattern(
    id="cue-nccl",
    regex="nccl",
    kind="context",
    event="nccl",
    means=Bilingual(zh="提到 NCCL", en="NCCL is named"),
    examples=("nccl",),
    scope="text",
)
THINGS = {cue.id for cue in CUES if cue.sound} | {"cue-oom"}


@pytest.mark.parametrize("text", IN_ORDER)
def test_a_thing_in_order_speaks_against_its_causes(text: str) -> None:
    """What a person found in order or ruled out adds to no cause it would be the sign of."""
    remarks = POLARITY.read(text)
    statements = STATEMENTS.read(remarks)
    hits = READER.read(remarks, statements)
    signals = [s for s in cue_signals(hits) if s.reason_id in THINGS]
    signals += statement_signals(statements, hits)
    assert {signal.rules_out for signal in signals} == {True}
    for signal in signals:
        assert max(signal.weights.values()) < 0


@pytest.mark.parametrize("text", NOT_IN_ORDER)
def test_what_only_sounds_in_order_does_not_turn_a_cue(text: str) -> None:
    """A comparison, a remedy, a question or a lack leaves a cue as it is."""
    assert [hit.cue.id for hit in read(text) if hit.cue.id in THINGS and hit.denied] == []


@pytest.mark.parametrize(
    "text",
    [
        "dmesg shows Xid 79 on node 2 but no ECC errors",
        "no ECC errors. Later dmesg shows Xid 79",
        "node 2 没有 ECC 报错。后来报了 Xid 79",
    ],
)
def test_the_mention_that_is_not_denied_is_the_one_shown(text: str) -> None:
    """A cue with one such mention counts as it is, and its quote and line are of that mention."""
    hit = next(item for item in read(text) if item.cue.id == "cue-xid-ecc")
    assert not hit.denied
    assert "Xid 79" in hit.quote


@pytest.mark.parametrize(
    ("text", "cue"),
    [
        ("there is no disk space left", "cue-slow-storage"),
        ("磁盘没空间了", "cue-slow-storage"),
        ("no gpu memory left", "cue-memory-nearly-full"),
        ("显存没有剩余", "cue-memory-nearly-full"),
        ("no MASTER_ADDR is set", "cue-master-addr"),
        ("the container has no shared memory to speak of", "cue-shm"),
    ],
)
def test_to_have_none_of_what_a_job_needs_is_the_trouble(text: str, cue: str) -> None:
    """A lack is found and counts for its causes."""
    assert {hit.cue.id: hit.denied for hit in read(text)}[cue] is False


@pytest.mark.parametrize(
    "text", ["no hardware problem", "没有硬件问题", "the network interface is fine"]
)
def test_one_remark_counts_once(text: str) -> None:
    """The cue of a mere word is silent where a weightier cue holds the same words."""
    things = [hit.cue for hit in read(text) if hit.cue.sound]
    assert len(things) == 1
    assert things[0].causes != {}


def test_a_mere_word_counts_where_no_weightier_cue_stands() -> None:
    """What is said of the hardware alone still counts beside another cue elsewhere."""
    found = {hit.cue.id for hit in read("the hardware is fine. The temperature is high")}
    assert found >= {"cue-hardware-word", "cue-hardware-words"}
    hits = read("saving the checkpoint, where the disk is fine, hangs")
    assert {hit.cue.id: hit.denied for hit in hits}["cue-disk-word"]
    assert "cue-save-hangs" in {hit.cue.id for hit in hits}


@pytest.mark.parametrize("word", ["fine ", "shm is ", "网络 ", "two nodes ", "not ", "足够"])
def test_polarity_is_read_in_linear_time(word: str) -> None:
    """Ten times the text takes no more than some ten times as long."""

    def seconds(count: int) -> float:
        text = "shm network disk " + word * (count // len(word))
        started = time.perf_counter()
        read(text)
        return time.perf_counter() - started

    read(word)
    few, many = (min(seconds(size) for _ in range(3)) for size in (1_600, 16_000))
    assert many < 60 * few + 0.05


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("rank 3 did not crash", True),
        ("the process never exited", True),
        ("rank 2 没有崩溃", True),
        ("rank 3 crashed", False),
        ("rank 3 没通过", False),
        ("rank 3 does not respond, it crashed", False),
    ],
)
def test_a_negation_inside_a_cue_turns_it(text: str, denied: bool) -> None:
    """One that the cue does not ask for itself says the contrary of the cue."""
    hits = {hit.cue.id: hit.denied for hit in read(text)}
    assert hits["cue-process-died"] is denied


def test_the_point_of_a_version_ends_no_clause() -> None:
    """The quote is the whole clause, and versions named say nothing about the hardware."""
    hits = read("torch 2.5.1+cu124, NCCL 2.21.5. It hangs")
    hit = next(item for item in hits if item.cue.id == "cue-driver-cuda")
    assert hit.quote == "torch 2.5.1+cu124, NCCL 2.21.5"
    assert "gpu-hardware" not in hit.cue.causes


@pytest.mark.parametrize(
    "text",
    [
        "node1:26 [0] transport.cu:153 NCCL WARN Cuda failure",
        "deepspeed v0.3.1 says socket.h:360 connection refused NCCL",
        "NCCL (from nccl-2.19.tar.gz) was built here",
    ],
)
def test_a_point_inside_a_word_ends_no_clause(text: str) -> None:
    """Only a point with a blank, an end or Chinese behind it ends a clause."""
    quotes = {hit.quote for hit in read(f"{text}. 完.后", CueReader([NCCL]))}
    assert quotes == {text}


def test_a_quote_begins_with_a_whole_word() -> None:
    """A long clause is cut before a word, not within it, and the match is in the quote."""
    for size in range(12):
        text = "y" * size + " something " * 30 + "with NCCL and others " * 20
        (hit,) = read(text, CueReader([NCCL]))
        assert hit.quote in text
        assert hit.quote.split()[0] in ("something", "with")
        assert "NCCL" in hit.quote
        assert len(hit.quote) <= MAX_QUOTE


def test_the_same_on_all_ranks_is_no_call() -> None:
    """What is equal everywhere speaks against uneven data, and for no mismatch."""
    weights = [hit.cue.causes for hit in read("the batches are the same on all ranks")]
    assert sum(item.get("uneven-data", 0.0) for item in weights) < 0
    assert sum(item.get("collective-mismatch", 0.0) for item in weights) <= 0


def test_a_quote_is_a_literal_piece_of_the_text() -> None:
    """The quote stands in the text, on the line named, and is short enough to show."""
    text = "title\n" + "word " * 80 + "the DistributedSampler is used here " + "word " * 80
    hit = next(h for h in read(text) if h.cue.id == "cue-sampler")
    assert hit.quote in text
    assert "Sampler" in hit.quote
    assert len(hit.quote) <= MAX_QUOTE
    assert hit.line == 2


@settings(deadline=None)
@given(st.text(max_size=400))
def test_any_text_is_read(text: str) -> None:
    """No text breaks the reader, lone surrogates included, and quotes come out of it."""
    cleaned = text[:MAX_TEXT].encode("utf-8", "replace").decode()
    assert all(hit.quote in cleaned for hit in read(text + "\ud800"))


def test_every_cue_speaks_both_languages_or_names_a_technical_term() -> None:
    """Meanings stand in both languages, and the Chinese one is Chinese."""
    han = re.compile(r"[\u4e00-\u9fff]")
    assert [cue.id for cue in CUES if not han.search(cue.means.zh)] == []
    assert [cue.id for cue in CUES if han.search(cue.means.en)] == []


def test_cues_live_in_data(data_dir: Path) -> None:
    """Each id stands once and begins with the name of its kind."""
    cues = read_yaml(data_dir / "cues.yaml", tuple[Pattern, ...])
    assert len({cue.id for cue in cues}) == len(cues)
    assert all(cue.id.startswith("cue-") and cue.scope == "text" for cue in cues)
