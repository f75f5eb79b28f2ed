"""The pairs mined out of the knowledge itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kb.knowledge.load import Knowledge
from kb.text.tokenizer import Tokenizer
from kb.train.embedding.corpus import Pair
from kb.train.embedding.knowledge_pairs import FILE, knowledge_pairs, without
from kb.types.entries import Section
from kb.types.knowledge import Bilingual, FactMeaning
from kb.types.vocabulary import Language
from tests.kb.fakes import make_entry


def section(language: Language, text: str, role: str = "causes") -> Section:
    """A section of that text."""
    return Section(role=role, title="t", text=text, language=language)


def knowledge(*sections: Section) -> Knowledge:
    """One fact and one case with those sections."""
    case = replace(make_entry("a"), title=Bilingual(zh="超时", en="timeout"), sections=sections)
    fact = FactMeaning(id="f", means=Bilingual(zh="落后", en="behind"))
    return Knowledge(
        digest="",
        causes=(),
        events=(),
        patterns=(),
        cues=(),
        frameworks=(),
        facts=(fact,),
        advice=(),
        cases=(case,),
    )


def test_twins_become_pairs() -> None:
    """Bilingual texts first, then sections: by sentence where they align, else whole."""
    aligned = section("zh", "卡死了。重启。"), section("en", "It hangs. Restart.")
    uneven = section("zh", "一。二。", "fixes"), section("en", "One and two.", "fixes")
    assert knowledge_pairs(knowledge(*aligned, *uneven)) == [
        Pair("落后", "behind"),
        Pair("超时", "timeout"),
        Pair("卡死了。", "It hangs."),
        Pair("重启。", "Restart."),
        Pair("一。二。", "One and two."),
    ]


def test_known_translations_are_left_out() -> None:
    """A line goes when word and translation are known, whatever the probabilities."""
    mined = "# header\n卡\tcard\t0.9\t0.9\n卡\tgpu\t0.5\t0.5\n"
    assert without(mined, ["卡\tcard\t0.1\t0.1\n"]) == "# header\n卡\tgpu\t0.5\t0.5\n"


def test_the_shipped_words_add_to_the_others(data_dir: Path) -> None:
    """No line of the file stands in ``mined.tsv``, and the tokenizer uses them."""
    lexicon = data_dir / "lexicon"
    mined = (lexicon / FILE).read_text("utf-8")
    known = (lexicon / "mined.tsv").read_text("utf-8").partition("\n")[2]
    assert without(mined, [known]) == mined
    word, translation = mined.splitlines()[1].split("\t")[:2]
    assert translation in dict(Tokenizer(lexicon).expand([word]))
