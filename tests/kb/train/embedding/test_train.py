"""Training: each step against an oracle, and the whole twice with the same result."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kb.errors import InputError
from kb.text.tokenizer import Tokenizer, stem
from kb.train.embedding.train import main, train

pytest.importorskip("torch")
pytest.importorskip("scipy")
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

from kb.embed.static import FORMAT, MANIFEST, StaticEmbedder  # noqa: E402
from kb.train.embedding.corpus import Corpus, Pair, read_corpus  # noqa: E402
from kb.train.embedding.export import quantise, replace_idf, write_model  # noqa: E402
from kb.train.embedding.initial import main_axes  # noqa: E402
from kb.train.embedding.optimise import Examples, Recipe, optimise  # noqa: E402
from kb.train.embedding.translations import (  # noqa: E402
    mine,
    translate,
)
from kb.train.embedding.vocabulary import (  # noqa: E402
    build_tokenizer,
    count_words,
    normalizer,
)

ROOT = Path(__file__).resolve().parents[4]
LEXICON = ROOT / "data" / "lexicon"
THINGS = {"训练": "training", "网络": "network", "进程": "process", "梯度": "gradient"}
STATES = {"卡死": "hang", "超时": "timeout", "退出": "exit", "重启": "restart", "变慢": "slow"}


class WordTeacher:
    """A teacher whose words have fixed random vectors and whose texts are their mean."""

    words = ("hang", "timeout", "##ing", "exit")
    width = 24

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (n, 24)."""
        sums = np.stack([np.sum([self._word(w) for w in text.split()], axis=0) for text in texts])
        unit: NDArray[np.float32] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return unit.astype(np.float32)

    def _word(self, word: str) -> NDArray[np.float64]:
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
        return np.random.default_rng(seed).normal(size=self.width)


def tiny_corpus() -> Corpus:
    """Twenty Chinese sentences with their translation, each heading another."""
    pairs = [
        Pair(f"{thing}{state}", f"{english} {means}")
        for thing, english in THINGS.items()
        for state, means in STATES.items()
    ]
    headings = [Pair(one.right, other.left) for one, other in zip(pairs, pairs, strict=True)]
    documents = [side for pair in pairs for side in (pair.left, pair.right)]
    return Corpus(
        pairs=tuple(pairs),
        headings=tuple(headings),
        documents=tuple(documents),
        sources=("example/docs (Apache-2.0)",),
    )


def tiny_training(steps: int) -> NDArray[np.float32]:
    """Vectors of the tiny corpus after `steps`: Chinese and English sides, shape (2, 20, 16)."""
    corpus, text = tiny_corpus(), Tokenizer(LEXICON)
    recipe = Recipe(dimension=16, steps=steps, warm_up=2, batch=10, glossary_batch=4)
    glossary = [Pair(*item) for item in STATES.items()]
    teacher = WordTeacher()
    rows, pieces = train(corpus, glossary, ["watchdog"], text, recipe, teacher)
    sides = []
    for texts in ([p.left for p in corpus.pairs], [p.right for p in corpus.pairs]):
        vectors = np.stack([rows[pieces.encode(text).ids].sum(axis=0) for text in texts])
        sides.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    return np.stack(sides)


def test_trained_sentences_find_their_translation() -> None:
    """Vocabulary, alignment and training together: every sentence is nearest to its own."""
    chinese, english = tiny_training(60)
    assert ((chinese @ english.T).argmax(axis=1) == np.arange(20)).all()


def test_optimising_teaches_random_rows() -> None:
    """From random rows, pairs that were strangers become each other's nearest."""
    generator = np.random.default_rng(5)
    rows = generator.normal(size=(41, 16)).astype(np.float32)
    left, right = [[i] for i in range(1, 21)], [[i] for i in range(21, 41)]
    teacher = generator.normal(size=(20, 16)).astype(np.float32)
    teacher /= np.linalg.norm(teacher, axis=1, keepdims=True)
    examples = Examples(
        chinese=left, english=right, above=left, below=right, terms=left, meanings=right,
        teacher=teacher,
    )  # fmt: skip
    losses: list[float] = []
    recipe = Recipe(dimension=16, steps=150, warm_up=5, batch=20, learning_rate=0.05)
    trained = optimise(rows, examples, recipe, lambda _, loss: losses.append(loss))
    own = np.arange(20)
    assert ((rows[1:21] @ rows[21:].T).argmax(axis=1) == own).mean() < 0.5
    assert ((trained[1:21] @ trained[21:].T).argmax(axis=1) == own).all()
    toward = trained[21:] / np.linalg.norm(trained[21:], axis=1, keepdims=True)
    assert np.diag(toward @ teacher.T).mean() > 0.7
    assert not trained[0].any()
    assert losses[-1] < losses[0]


def test_training_twice_gives_the_same_bits() -> None:
    """Same corpus, same seed: the same rows, bit for bit."""
    assert (tiny_training(5) == tiny_training(5)).all()


def test_alignment_finds_the_translation() -> None:
    """With 1↔1 and 2↔2 mixed in one sentence, the pure sentences decide which is which."""
    sentences = [[1], [2], [1, 2]]
    probability = translate(sentences, sentences, 3, 3).toarray()
    assert probability[1].argmax() == 1
    assert probability[2].argmax() == 2
    assert probability[1, 1] > 0.8
    assert np.allclose(probability.sum(axis=1), 1)


def test_alignment_is_model_one() -> None:
    """One iteration over one sentence pair is the uniform posterior, worked out by hand."""
    probability = translate([[1]], [[1, 2]], 2, 3, iterations=1).toarray()
    assert np.allclose(probability, [[0, 0.5, 0.5], [0, 0.5, 0.5]])


def test_mining_keeps_what_both_directions_agree_on() -> None:
    """Each word of the tiny corpus is translated by its own English word."""
    corpus = tiny_corpus()
    mined = mine(corpus.pairs * 2, Tokenizer(LEXICON)).splitlines()[1:]
    best = {}
    for line in mined:
        chinese, english, forward, backward = line.split("\t")
        best.setdefault(chinese, english)
        assert 0 < float(forward) <= 1
        assert 0 < float(backward) <= 1
    assert best == {word: stem(means) for word, means in (THINGS | STATES).items()}


@pytest.fixture(scope="module")
def pieces() -> list[str]:
    """Pieces of a line with everything in it."""
    text = Tokenizer(LEXICON)
    clean = normalizer(text.compounds)
    counts = count_words(["process group timeout timeout 集合通信超时"] * 3, text.cut, clean)
    tokenizer = build_tokenizer(
        counts, ["hang", "##ing", "torch"], ["建链", "watchdog", "allreduce"], clean
    )
    line = (
        "ProcessGroup 0x7f00 10.0.0.1:80 2025-01-02 03:04:05 1800000 torch2 Watchdog all-reduce "
        "time out hanging 集合通信超时 建链 https://example.org/a"
    )
    return list(tokenizer.encode(line).tokens)


def test_vocabulary_cuts_words_not_letters(pieces: list[str]) -> None:
    """Known words are one piece; identifiers are split; noise is gone; compounds are joined."""
    assert pieces[:5] == ["process", "group", "torch", "2", "watchdog"]
    assert pieces[5:] == ["allreduce", "timeout", "hang", "ing", "集合通信超时", "建链"]
    assert not {"0", "7", "80", "2025"} & set(pieces)


def test_main_axes_are_those_of_the_largest_spread() -> None:
    """The basis is orthonormal and keeps more length than any coordinate axes."""
    generator = np.random.default_rng(1)
    data = (generator.normal(size=(200, 6)) * [1, 9, 1, 5, 1, 1]).astype(np.float32)
    axes = main_axes(data, 2)
    assert np.allclose(axes.T @ axes, np.eye(2), atol=1e-5)
    assert np.abs(axes[1, 0]) > 0.99
    assert np.abs(axes[3, 1]) > 0.99


def test_quantising_keeps_each_number_within_half_a_step() -> None:
    """|row - int8 · scale| ≤ scale / 2, plus the rounding of the scale itself."""
    rows = np.random.default_rng(2).normal(size=(50, 16)).astype(np.float32)
    rows[7] = 0
    int8, scales = quantise(rows)
    steps = scales.astype(np.float32)[:, None]
    assert int8.dtype == np.int8
    assert (np.abs(rows - int8 * steps) <= steps / 2 + np.abs(rows) / 1000).all()
    assert not int8[7].any()


def test_written_model_can_be_read(tmp_path: Path) -> None:
    """What is written loads, and another idf gives it another name."""
    text = Tokenizer(LEXICON)
    clean = normalizer(text.compounds)
    tokenizer = build_tokenizer(count_words(["rank rank"], text.cut, clean), [], [], clean)
    size = tokenizer.get_vocab_size()
    rows = np.random.default_rng(3).normal(size=(size, 8)).astype(np.float32)
    ones = np.ones(size, dtype=np.float32)
    write_model(tmp_path / "m", name="small", rows=rows, tokenizer=tokenizer, idf=ones, config={})
    first = StaticEmbedder.load(tmp_path / "m")
    replace_idf(tmp_path / "m", ones * 2)
    second = StaticEmbedder.load(tmp_path / "m")
    expected = rows[tokenizer.encode("rank").ids].sum(axis=0)
    assert first.encode_queries(["rank"])[0] @ expected > 0.999 * np.linalg.norm(expected)
    assert first.name.split("@")[0] == second.name.split("@")[0] == "small"
    assert first.name != second.name
    assert json.loads((tmp_path / "m" / MANIFEST).read_text("utf-8"))["format"] == FORMAT


def test_corpus_leaves_out_what_is_held_out(tmp_path: Path) -> None:
    """Held-out lines are for measuring; headings come with the paragraph below them."""
    common = {"repo": "a/b", "licence": "MIT", "level": "block", "doc": "d"}
    rows = [
        common | {"zh": "標題", "en": "Heading", "split": "train"},
        common | {"zh": "一句话。", "en": "One sentence.", "split": "train"},
        common | {"zh": "留出。", "en": "Held out.", "split": "heldout-x"},
    ]
    with gzip.open(tmp_path / "parallel.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    corpus = read_corpus(tmp_path, Tokenizer(LEXICON))
    assert corpus.pairs == (Pair("标题", "Heading"), Pair("一句话。", "One sentence."))
    assert corpus.headings == (Pair("标题", "一句话。"),)
    assert corpus.documents == ("标题\n一句话。", "Heading\nOne sentence.")
    assert corpus.sources == ("a/b (MIT)",)


def test_missing_corpus_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with the usage exit code and says what it looked for."""
    with pytest.raises(InputError, match=r"parallel\.jsonl\.gz"):
        read_corpus(tmp_path, Tokenizer(LEXICON))
    assert main(["--parallel", str(tmp_path), "--output", str(tmp_path / "m")]) == 2
    assert "parallel.jsonl.gz" in capsys.readouterr().err


def test_idf_only_fits_the_cases(tmp_path: Path) -> None:
    """Without a corpus the command gives the model the idf of the cases, and another name."""
    model = Path(shutil.copytree(ROOT / "data" / "model", tmp_path / "model"))
    cases = tmp_path / "cases"
    cases.mkdir()
    texts = ["watchdog timeout", "看门狗 timeout", "loss"]
    for number, text in enumerate(texts):
        (cases / f"{number}.md").write_text(text, "utf-8")
    before = StaticEmbedder.load(model)
    assert main(["--idf-only", "--output", str(model), "--cases", str(cases)]) == 0
    after = StaticEmbedder.load(model)
    expected = StaticEmbedder(model, idf=before.fit_idf(texts))
    assert after.name != before.name
    questions = ["watchdog timeout loss", "看门狗 rank"]
    assert np.allclose(
        after.encode_queries(questions), expected.encode_queries(questions), atol=1e-3
    )


def test_idf_only_needs_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty folder is refused, the model stays as it was."""
    model = Path(shutil.copytree(ROOT / "data" / "model", tmp_path / "model"))
    before = StaticEmbedder.load(model).name
    assert main(["--idf-only", "--output", str(model), "--cases", str(tmp_path)]) == 2
    assert "no cases" in capsys.readouterr().err
    assert StaticEmbedder.load(model).name == before
