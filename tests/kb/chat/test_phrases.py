"""The phrasebook: every example means what its entry says."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.chat.phrase_sets import CausePhrase, PhraseGroup, PhraseSet
from kb.chat.phrases import Phrasebook, load_phrases
from kb.errors import DataError
from kb.knowledge.load import read_yaml
from kb.service import Service
from kb.settings import shipped_data

BOOK = read_yaml(shipped_data() / "chat.yaml", Phrasebook)
ENTRIES = [*BOOK.topics, *BOOK.platforms, *BOOK.ordinals, *BOOK.languages, BOOK.field, BOOK.orders]
ENTRIES += [BOOK.asking, BOOK.endings, BOOK.takes_back, BOOK.keeps, BOOK.misleading]
ENTRIES += [BOOK.troubles, BOOK.cured, BOOK.guesses, BOOK.to_us, BOOK.own_deeds, BOOK.gone]
ENTRIES += [BOOK.explanations, BOOK.refusals, BOOK.other_incident, BOOK.first_incident]
ENTRIES += [
    BOOK.denies_next_words,
    BOOK.ruling_out,
    *BOOK.forms,
    BOOK.embedded_questions,
    *BOOK.tools,
]
ENTRIES += [
    BOOK.question_words,
    BOOK.why_words,
    BOOK.supposition_words,
    BOOK.assertion_words,
    BOOK.kinds,
]
ENTRIES += [BOOK.correction_leads, BOOK.retracting_words, BOOK.restarts, BOOK.other_than_restart]
ENTRIES += [
    BOOK.record_words,
    BOOK.pointing,
    BOOK.check_words,
    BOOK.stacks,
    BOOK.case_requests,
    BOOK.others,
]
ENTRIES += [BOOK.case_request_words, BOOK.others]


def name_of(entry: object) -> str:
    """An entry's id for the test's name."""
    return str(getattr(entry, "id", getattr(entry, "number", "words")))


@pytest.mark.parametrize("entry", ENTRIES, ids=name_of)
def test_examples_match_and_counterexamples_do_not(entry: PhraseGroup) -> None:
    """The patterns of an entry match all of `examples` and none of `no_match`."""
    matcher = PhraseSet([entry])
    assert [text for text in entry.examples if not matcher.match(text)] == []
    assert [text for text in entry.no_match if matcher.match(text)] == []


def test_ids_are_unique() -> None:
    """An id names one entry of its list."""
    for entries in (BOOK.topics, BOOK.platforms):
        ids = [entry.id for entry in entries]  # type: ignore[attr-defined]
        assert sorted(set(ids)) == sorted(ids)


def test_every_cause_has_words(service: Service) -> None:
    """Each cause but `unknown` is named by its own id, alone and first."""
    for cause in service.knowledge.causes:
        if cause.id != "unknown":
            assert BOOK.causes_in(f"why not {cause.id}?")[0] == cause.id


def test_a_single_cause_is_meant_before_a_wider_word() -> None:
    """“network fault” means the fault; “network” alone leaves both open."""
    assert BOOK.causes_in("is it a network fault?") == ("network-fault",)
    assert BOOK.causes_in("it was the network configuration") == ("network-config",)
    assert set(BOOK.causes_in("why not the network?")) == {"network-config", "network-fault"}


@pytest.mark.parametrize(
    ("text", "number"), [("the second one", 2), ("第三个", 3), ("2", 2), ("step 2000", 0), ("", 0)]
)
def test_ordinals(text: str, number: int) -> None:
    """A place in a list is read, other numbers are not."""
    assert BOOK.ordinal_in(text) == number


def test_a_pattern_that_is_not_linear_is_refused() -> None:
    """RE2 has no look-around: a pattern with one names its entry and file."""
    with pytest.raises(DataError, match=r"chat\.yaml: greeting"):
        PhraseSet([CausePhrase(id="greeting", causes=(), patterns=("(?=hello)",), examples=())])


def test_a_topic_with_an_unknown_cause_is_refused(service: Service, tmp_path: Path) -> None:
    """A cause id nobody knows is an error at start, not a wrong answer later."""
    text = (shipped_data() / "chat.yaml").read_text(encoding="utf-8")
    text = text.replace("causes: [shm-limits]", "causes: [shm-limit]")
    (tmp_path / "chat.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="shm-limit"):
        load_phrases(tmp_path, service.knowledge)


def test_hostile_text_takes_linear_time() -> None:
    """A long text of half matches is read without an error and means nothing."""
    assert BOOK.is_asked("is it " + "not " * 100_000 + "\x00\ud800")
    assert BOOK.causes_in("a" * 1_000_000) == ()
