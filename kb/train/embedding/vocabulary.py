"""The tokenizer of the embedded model: one vocabulary of whole words for both languages.

It is assembled, not learnt: trained jointly, Chinese takes nearly all pieces, and the trainers of
unigram and BPE pieces give another vocabulary on every run. Chinese words come from the segmenter,
English ones from the corpus and the teacher's vocabulary, and every single character is a piece.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from kb.text.language import HAN, has_han
from kb.text.tokenizer import Cut

UNKNOWN = "<unk>"
MIN_COUNT = {"zh": 2, "en": 2}  # rarer words are mostly misspellings and names
MAX_HAN_CHARACTERS = 6  # longer cuts are seldom words
MAX_LETTERS = 24
# An English word should be one piece: every piece costs about the same, so the fewest win.
WORD_SCORE = -5.0
FREQUENCY_SHARE = 0.1  # of the log probability, to break ties between equally many pieces
INSIDE_SCORE = -8.0  # the teacher's pieces inside words
CHARACTER_SCORE = -14.0  # single letters: only where nothing else fits
RARE_HAN_SCORE = -16.0  # single Han characters the corpus does not have

NOISE = (
    r"https?://\S+"
    r"|\b0x[0-9a-fA-F]+\b"
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"
    r"|\b\d{4}[-/]\d\d?[-/]\d\d?\b"
    r"|\b\d\d?:\d\d:\d\d(?:[.,]\d+)?"
    r"|\d{5,}"
)
SPLITS = (
    r"(?<=[a-z])(?=[A-Z])"  # camelCase
    r"|(?<=[A-Z])(?=[A-Z][a-z])"  # HTTPServer
    r"|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])"  # torch2
)


def normalizer(compounds: Mapping[str, str]) -> normalizers.Normalizer:
    """Noise out, identifiers apart, punctuation to spaces, lower case, compounds in one.

    `compounds` has the one-word spelling with the spelling in parts.
    """
    return normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Replace(Regex(NOISE), " "),
            normalizers.Replace(Regex(SPLITS), " "),
            normalizers.Replace(Regex(r"[^\p{L}\p{N}]+"), " "),
            normalizers.Lowercase(),
            *(
                normalizers.Replace(Regex(rf"\b{apart}\b"), together)
                for together, apart in compounds.items()
            ),
        ]
    )


def pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    """Split at spaces and between Han and everything else."""
    return pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(f"[{HAN}]+"), "isolated")]
    )


def count_words(texts: Iterable[str], cut: Cut, clean: normalizers.Normalizer) -> Counter[str]:
    """How often each word occurs in the `clean` texts, Chinese ones as `cut` cuts them."""
    split = pre_tokenizer()
    counts: Counter[str] = Counter()
    for text in texts:
        for word, _ in split.pre_tokenize_str(clean.normalize_str(text)):
            counts.update(cut(word) if has_han(word) else (word,))
    return counts


def build_tokenizer(
    counts: Counter[str],
    teacher_words: Sequence[str],
    domain_words: Sequence[str],
    clean: normalizers.Normalizer,
) -> Tokenizer:
    """The unigram tokenizer whose id 0 is the unknown token.

    Args:
        counts: words of the corpus as `count_words` makes them.
        teacher_words: vocabulary of the teacher, ``##`` before pieces inside a word.
        domain_words: words that are pieces however rare they are.
        clean: its normalizer, the one `counts` was made with.
    """
    scores: dict[str, float] = {}
    _add_chinese(scores, counts, [word for word in domain_words if has_han(word)])
    _add_english(scores, counts, list(teacher_words), domain_words)
    pieces = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    tokenizer = Tokenizer(models.Unigram([(UNKNOWN, 0.0), *pieces], unk_id=0, byte_fallback=False))
    tokenizer.normalizer = clean
    tokenizer.pre_tokenizer = pre_tokenizer()
    return tokenizer


def _add_chinese(scores: dict[str, float], counts: Counter[str], domain: list[str]) -> None:
    words = {word: count for word, count in counts.items() if has_han(word)}
    total = sum(words.values())
    for word, count in words.items():
        if len(word) == 1 or (count >= MIN_COUNT["zh"] and len(word) <= MAX_HAN_CHARACTERS):
            scores[word] = math.log(count / total)
    for word in domain:
        scores[word] = math.log(max(words.get(word, 0), MIN_COUNT["zh"]) / total)
    for character in {character for word in words for character in word}:
        scores.setdefault(character, RARE_HAN_SCORE)


def _add_english(
    scores: dict[str, float], counts: Counter[str], teacher: Sequence[str], domain: Sequence[str]
) -> None:
    words = {word: count for word, count in counts.items() if re.fullmatch(r"[a-z]+|\d+", word)}
    total = sum(words.values())
    known = {word for word in (*teacher, *domain) if re.fullmatch(r"[a-z]{2,}", word)}
    often = {word for word, n in words.items() if n >= MIN_COUNT["en"] and len(word) <= MAX_LETTERS}
    for word in known | often:
        frequency = math.log(max(words.get(word, 0), 1) / total)
        scores[word] = WORD_SCORE + FREQUENCY_SHARE * frequency
    for piece in teacher:
        if re.fullmatch(r"##[a-z0-9]{2,}", piece):
            scores.setdefault(piece[2:], INSIDE_SCORE)
    for character in "abcdefghijklmnopqrstuvwxyz0123456789":
        scores[character] = CHARACTER_SCORE
