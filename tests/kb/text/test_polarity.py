"""Polarity: every mark finds its examples; what stands around a name decides how it is meant."""

from __future__ import annotations

import time

import pytest
import re2

from kb.errors import DataError
from kb.knowledge.load import read_yaml
from kb.settings import shipped_data
from kb.text.polarity import PolarityReader, Sentences
from kb.text.sentence import Mention
from kb.types.knowledge import PolarityMark
from kb.types.vocabulary import MarkRole, Polarity, Standing

MARKS = read_yaml(shipped_data() / "polarity.yaml", tuple[PolarityMark, ...])
READER = PolarityReader(MARKS)


def judge(text: str, standing: Standing, *, needed: bool = False) -> list[str | None]:
    """The polarity of every ``THING`` in `text`, or of every ``物`` where there is none."""
    word = "THING" if "THING" in text else "物"
    remarks = READER.read(text)
    places = [place for place in range(len(text)) if remarks.text.startswith(word, place)]
    mentions = [
        Mention(start=place, end=place + len(word), standing=standing, needed=needed)
        for place in places
    ]
    return [polarity and str(polarity) for polarity in remarks.judge(mentions)]


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark.id)
def test_a_mark_finds_its_examples_and_not_its_negatives(mark: PolarityMark) -> None:
    """Every example is found by its mark, no negative is."""
    options = re2.Options()
    options.case_sensitive = False
    expression = re2.compile(mark.regex, options)
    assert [text for text in mark.examples if not expression.search(text)] == []
    assert [text for text in mark.negatives if expression.search(text)] == []


def test_every_role_has_a_mark() -> None:
    """No role waits for words that nobody wrote down."""
    assert {mark.role for mark in MARKS} == set(MarkRole)


def test_a_mark_that_re2_refuses_is_named() -> None:
    """The message names file and role."""
    mark = PolarityMark(id="ahead", role=MarkRole.GOOD, regex="fine(?= now)", examples=("fine",))
    with pytest.raises(DataError, match=r"polarity\.yaml: good"):
        PolarityReader([mark])


NAMES = [
    ("THING is fine", "in_order"),
    ("we checked THING, all in order", "in_order"),
    ("THING and THING are both healthy", "in_order"),
    ("nothing wrong with THING", "in_order"),
    ("THING is broken", "trouble"),
    ("THING is not fine", "trouble"),
    ("THING is not slow", "denied"),
    ("it is not THING", "denied"),
    ("neither THING nor THING is slow", "denied"),
    ("it is not the case that THING is fine", "trouble"),
    ("replaced THING, same result", "tried_in_vain"),
    ("replacing THING did not help", "tried_in_vain"),
    ("We replaced THING. No change.", "tried_in_vain"),
    ("none of these helped: THING, replacing THING", "tried_in_vain"),
    ("replacing THING fixed it", "helped"),
    ("with another THING it runs", "helped"),
    ("could it be THING?", "asked"),
    ("are there any settings for THING", "asked"),
    ("should I replace THING?", "asked"),
    ("I plan to replace THING", "asked"),
    ("I suspect THING", "guessed"),
    ("maybe THING is slow", "guessed"),
    ("it is THING, I guess", "guessed"),
    ("last year THING was broken", "before"),
    ("we use THING", None),
    ("with THING everything runs until the first save", None),
    ("物没问题", "in_order"),
    ("物、物都正常", "in_order"),
    ("物坏了", "trouble"),
    ("物不正常", "trouble"),
    ("物不慢", "denied"),
    ("不是物的问题", "denied"),
    ("换了物，还是一样", "tried_in_vain"),
    ("换掉物就好了", "helped"),
    ("是不是物？", "asked"),
    ("打算换物", "asked"),
    ("我怀疑是物", "guessed"),
    ("去年物坏过", "before"),
    ("我们用物", None),
    ("We looked at the THING", "looked_at"),
    ("with THING off the pair passes too", "helped"),
    ("ok so I set the THING", None),
    ("编译物超过600秒", None),
    ("checked the THING, all good", "in_order"),
    ("checked the THING, many errors", "trouble"),
    ("I checked which THING it picks and it is broken", "trouble"),
    ("物也查过了", "looked_at"),
    ("物看过,没问题", "in_order"),
    ("查了物，很慢", "trouble"),
    ("用仓库里的物做分布式训练，任务停在第一步之后不再前进", None),
]


@pytest.mark.parametrize(("text", "polarity"), NAMES, ids=[text for text, _ in NAMES])
def test_a_name_means_what_is_said_of_it(text: str, polarity: str | None) -> None:
    """Nothing is said of a thing that is only named."""
    assert set(judge(text, Standing.NAME)) == {polarity}


TROUBLES = [
    ("dmesg shows THING", "trouble"),
    ("no THING", "denied"),
    ("no THING in dmesg, no THING, no THING", "denied"),
    ("no THING, THING or THING", "denied"),
    ("none of these: THING, THING", "denied"),
    ("THING: none", "denied"),
    ("raised the limit, THING still occurs", "trouble"),
    ("could it be THING?", "asked"),
    ("last month we had THING, replaced since", "before"),
    ("没有物", "denied"),
    ("没有物和物", "denied"),
    ("以下都没有：物、物", "denied"),
    ("报了物", "trouble"),
    ("the job never connects and ends in THING", "trouble"),
    ("the job never connects or prints THING", "denied"),
    ("NCCL says THING, so it does not start", "trouble"),
    ("the job quits with THING. A reboot changes nothing", "trouble"),
    ("一直连不上，最后报物", "trouble"),
    ("报物，说连不上", "trouble"),
    ("没有报物", "denied"),
    ("both processes are there, THING", "trouble"),
]


@pytest.mark.parametrize(("text", "polarity"), TROUBLES, ids=[text for text, _ in TROUBLES])
def test_a_trouble_is_one_unless_it_is_denied(text: str, polarity: str) -> None:
    """A list that begins with a negation is denied to its end."""
    assert set(judge(text, Standing.TROUBLE)) == {polarity}


def test_a_contrast_ends_what_is_denied() -> None:
    """What stands behind "but" is of its own."""
    assert judge("no THING but THING", Standing.TROUBLE) == ["denied", "trouble"]
    assert judge("没有物，但是有物", Standing.TROUBLE) == ["denied", "trouble"]


def test_to_have_none_of_what_is_needed_is_the_trouble() -> None:
    """What is said not to be it is denied all the same."""
    assert judge("there is no THING", Standing.NAME, needed=True) == ["trouble"]
    assert judge("there is no THING", Standing.NAME) == ["denied"]
    assert judge("it is not THING", Standing.NAME, needed=True) == ["denied"]


def test_a_general_name_inside_a_phrase_names_nothing() -> None:
    """The timeout of "made the timeout vanish" is the problem, no setting."""
    text = "pre-caching made the timeout vanish"
    mention = Mention(start=21, end=28, standing=Standing.GENERIC)
    assert READER.read(text).judge([mention]) == [None]
    named = Mention(start=21, end=28, standing=Standing.NAME)
    assert READER.read(text).judge([named]) == [Polarity.HELPED]


@pytest.mark.parametrize(
    ("expression", "words", "turns"),
    [("rank.{0,20}crash", "rank 3 did not crash", True), ("not divisible", "not divisible", False)],
)
def test_a_negation_inside_turns_what_does_not_ask_for_it(
    expression: str, words: str, turns: bool
) -> None:
    """It is taken out, and the expression asked again."""
    assert READER.turns(re2.compile(expression), words) is turns


def test_the_point_of_a_number_ends_no_sentence() -> None:
    """Versions and addresses stay whole."""
    text = "It hangs. torch 2.5.1 is new! 后面"
    sentences = Sentences(text)
    spans = [sentences.span(sentences.number(place)) for place in (0, 16, 31)]
    assert [text[slice(*span)].strip() for span in spans] == [
        "It hangs",
        "torch 2.5.1 is new",
        "后面",
    ]


@pytest.mark.parametrize("word", ["fine ", "not ", "no THING, ", "但是", "neither nor "])
def test_polarity_is_judged_in_linear_time(word: str) -> None:
    """Ten times the text takes no more than some ten times as long."""

    def seconds(count: int) -> float:
        text = "THING is " + word * (count // len(word)) + "\n" + "THING is fine. " * (count // 15)
        started = time.perf_counter()
        judge(text, Standing.NAME)
        return time.perf_counter() - started

    judge(word, Standing.NAME)
    few, many = (min(seconds(size) for _ in range(3)) for size in (1_600, 16_000))
    assert many < 60 * few + 0.05
