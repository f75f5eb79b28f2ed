"""Fit the weights of `kb.text.line_model` to labelled lines.

``python -m kb.train.line_kind --posts ../shared/threads tests/quality/line_kinds.jsonl`` fits
``data/line_kinds.json`` on ``data/line_kinds_posts.txt``, posts written for it, and on the labels
named: JSON lines, one post each. Such a row has the lines themselves, ``{"post": id, "lines":
[{"n": 1, "text": "...", "kind": "prose"}, ...]}``, or their kinds alone, as that file, whose posts
stand in the folder of ``--posts``; rows ``held_back`` are left out. A linear-chain
conditional random field, trained by L-BFGS in torch with an L2 penalty; the same weights for the
same labels. ``--folds 4`` prints what named posts left out are read as, instead.
"""

from __future__ import annotations

import argparse
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kb.files.atomic import write_file
from kb.settings import shipped_data
from kb.text.line_model import (
    FORMAT,
    WEIGHTS,
    LineModel,
    LineWeights,
    SignReader,
    named_signs,
    sign_reader,
)
from kb.types.vocabulary import LineKind

PENALTY = 0.5  # of the squared weights, per line
MIN_COUNT = 3  # lines a sign must stand on
DIGITS = 2  # of a weight, written
ROUNDS = 60

POSTS = "line_kinds_posts.txt"
POST_MARK, KIND_MARK = "@@ POST ", "@@ "
OWN, OWN_SHARE = "own", 0.3  # posts written for the fit, by their names, and what each counts
PIECE, PIECES = 2, 6  # lines of a piece, pieces of a post that is put together
SHUFFLED = 300  # posts put together
QUOTED = LineKind.MARKUP.value  # how a quoted line is labelled, whatever was quoted
KINDS = [kind.value for kind in LineKind]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPost:
    """A post's lines, blank ones between them too, and a kind for each that is not blank."""

    name: str
    lines: tuple[str, ...]
    kinds: tuple[str, ...]


def read_labels(path: Path, posts: Path | None = None) -> list[LabelledPost]:
    """The posts of a file of labels: JSON lines, or text where ``@@ kind`` stands above lines.

    `posts` is the folder with the texts of rows that have kinds alone.
    """
    text = path.read_text("utf-8")
    if path.suffix == ".txt":
        return [_marked(post) for post in text.split(POST_MARK)[1:]]
    rows = [msgspec.json.decode(row) for row in filter(str.strip, text.split("\n"))]
    texts = post_texts(posts, {row["file"] for row in rows if "kinds" in row}) if posts else {}
    return [
        _by_runs(row, texts[row["file"], row["post"]]) if "kinds" in row else _by_lines(row)
        for row in rows
        if not row.get("held_back")
    ]


def post_texts(folder: Path, files: Iterable[str]) -> dict[tuple[str, str], str]:
    """What people pasted, by file and id: their words, a blank line, their log."""
    return {
        (file, post["id"]): f"{post.get('query_text') or ''}\n\n{post.get('query_log') or ''}"
        for file in files
        for row in reversed((folder / file).read_bytes().splitlines())
        for post in [msgspec.json.decode(row)]
    }


def kinds_of_runs(runs: str) -> list[str]:
    """The kinds of lines that ``prose*2 output*1`` stands for."""
    pairs = (run.split("*") for run in runs.split())
    return [kind for kind, count in pairs for _ in range(int(count))]


def _by_runs(row: dict[str, Any], text: str) -> LabelledPost:
    kinds = iter(kinds_of_runs(row["kinds"]))
    lines = tuple(text.split("\n"))
    return LabelledPost(
        name=row["post"],
        lines=lines,
        kinds=tuple(next(kinds) if line.strip() else "" for line in lines),
    )


def _by_lines(row: dict[str, Any]) -> LabelledPost:
    lines = {item["n"]: (item["text"], item["kind"]) for item in row["lines"]}
    numbers = range(min(lines), max(lines) + 1) if lines else range(0)
    texts, kinds = zip(*(lines.get(number, ("", "")) for number in numbers), strict=True)
    return LabelledPost(name=str(row["post"]), lines=texts, kinds=kinds)


def _marked(post: str) -> LabelledPost:
    name, *rows = post.rstrip("\n").split("\n")
    lines: list[str] = []
    kinds: list[str] = []
    kind = ""
    for row in rows:
        if row.startswith(KIND_MARK):
            kind = row.removeprefix(KIND_MARK).strip()
        else:
            lines.append(row)
            kinds.append(kind if row.strip() else "")
    return LabelledPost(name=name, lines=tuple(lines), kinds=tuple(kinds))


def shuffled(posts: Sequence[LabelledPost], count: int) -> list[LabelledPost]:
    """Posts put together of short pieces of others, so that no line hangs on its neighbours alone.

    The same for the same posts: the order is drawn from a fixed seed.
    """
    draw = random.Random(0)  # noqa: S311 - no secret
    pieces: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for post in posts:
        for kind, run in itertools.groupby(
            zip(post.lines, post.kinds, strict=True), key=lambda pair: pair[1]
        ):
            lines = [line for line, _ in run]
            if kind:
                pieces[kind] += [tuple(lines[n : n + PIECE]) for n in range(0, len(lines), PIECE)]
    made = []
    for number in range(count):
        kinds = [draw.choice((QUOTED, LineKind.PROSE, *pieces)) for _ in range(PIECES)]
        runs = [(kind, draw.choice(pieces[kind])) for kind in kinds if kind in pieces]
        made.append(
            LabelledPost(
                name=f"{OWN}-shuffled-{number}",
                lines=tuple(line for _, run in runs for line in (*run, "")),
                kinds=tuple(kind for k, run in runs for kind in (*[str(k)] * len(run), "")),
            )
        )
    return made


def fit(posts: Sequence[LabelledPost], reader: SignReader) -> LineWeights:
    """The weights that make the labels most likely, with a penalty on large ones."""
    import torch

    torch.manual_seed(0)
    own = [post for post in posts if post.name.startswith(OWN)]
    posts = [*posts, *shuffled(own, SHUFFLED if own else 0)]
    rows: list[tuple[list[list[str]], list[int], list[bool], float]] = []
    counts: Counter[str] = Counter()
    for post in posts:
        lines = reader.read(post.lines)
        line_signs = named_signs(lines)
        labelled = [
            (signs, KINDS.index(kind), line.apart)
            for line, signs, kind in zip(lines, line_signs, post.kinds, strict=True)
            if kind and not line.quoted  # nobody labelled what stands behind quote marks
        ]
        if labelled:
            each, kinds, apart = zip(*labelled, strict=True)
            share = OWN_SHARE if post.name.startswith(OWN) else 1.0
            rows.append((list(each), list(kinds), list(apart), share))
            counts.update(sign for signs in each for sign in set(signs))
    # The longest first: those that still have a line of some number then come before the others.
    rows.sort(key=lambda row: -len(row[1]))
    names = sorted(sign for sign, count in counts.items() if count >= MIN_COUNT)
    index = {sign: number for number, sign in enumerate(names)}
    weights = torch.zeros(len(names), len(KINDS), dtype=torch.float64, requires_grad=True)
    # From one line to the next, and from one to the next over a blank line.
    steps = torch.zeros(2, len(KINDS), len(KINDS), dtype=torch.float64, requires_grad=True)
    sizes = [len(kinds) for _, kinds, _, _ in rows]
    longest, total = max(sizes), sum(sizes)
    flat = [
        [index[sign] for sign in set(signs) if sign in index]
        for each, _, _, _ in rows
        for signs in each
    ]
    place = torch.tensor([number for number, signs in enumerate(flat) for _ in signs])
    column = torch.tensor([sign for signs in flat for sign in signs])
    matrix = torch.sparse_coo_tensor(
        torch.stack([place, column]),
        torch.ones(len(place), dtype=torch.float64),
        (total, len(names)),
    ).coalesce()
    gold = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros(len(rows), longest, dtype=torch.bool)
    apart_of = torch.zeros(len(rows), longest, dtype=torch.long)
    for number, (_, numbers, parted, _) in enumerate(rows):
        gold[number, : len(numbers)] = torch.tensor(numbers)
        apart_of[number, : len(numbers)] = torch.tensor(parted, dtype=torch.long)
        mask[number, : len(numbers)] = True
    going_on = mask.sum(dim=0).tolist()  # posts that have a line of that number
    shares = torch.tensor([share for _, _, _, share in rows], dtype=torch.float64)
    optimizer = torch.optim.LBFGS(
        [weights, steps], max_iter=ROUNDS, line_search_fn="strong_wolfe", history_size=20
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        scores = torch.zeros(len(rows), longest, len(KINDS), dtype=torch.float64)
        scores[mask] = torch.sparse.mm(matrix, weights)
        chosen = scores.gather(2, gold[:, :, None])[:, :, 0]
        pairs = steps[apart_of[:, 1:], gold[:, :-1], gold[:, 1:]]
        path = (chosen * mask).sum(dim=1) + (pairs * mask[:, 1:]).sum(dim=1)
        forward = scores[:, 0]
        for line in range(1, longest):
            open_posts = going_on[line]
            ways = forward[:open_posts, :, None] + steps[apart_of[:open_posts, line]]
            following = torch.logsumexp(ways, dim=1) + scores[:open_posts, line]
            forward = torch.cat([following, forward[open_posts:]])
        penalty = PENALTY * (weights.square().sum() + steps.square().sum())
        value = (shares * (torch.logsumexp(forward, dim=1) - path)).sum() + penalty
        value.backward()
        return value

    optimizer.step(loss)
    return LineWeights(
        format=FORMAT,
        kinds=KINDS,
        signs=names,
        weights=np.round(weights.detach().numpy(), DIGITS).tolist(),
        steps=np.round(steps[0].detach().numpy(), DIGITS).tolist(),
        apart=np.round(steps[1].detach().numpy(), DIGITS).tolist(),
    )


def measure(model: LineModel, posts: Sequence[LabelledPost]) -> dict[tuple[str, str], int]:
    """How often a line labelled as one kind is read as another (or the same) one."""
    pairs: dict[tuple[str, str], int] = defaultdict(int)
    for post in posts:
        lines = model.reader.read(post.lines)
        for line, kind, read in zip(lines, post.kinds, model.best_path(lines), strict=True):
            if kind:
                pairs[kind, QUOTED if line.quoted else model.kinds[read]] += 1
    return dict(pairs)


def table(pairs: dict[tuple[str, str], int]) -> str:
    """Share of lines right, and recall and precision of each kind."""
    total = sum(pairs.values())
    right = sum(count for (kind, read), count in pairs.items() if kind == read)
    rows = [f"lines {total}, right {right / total:.4f}"]
    for kind in KINDS:
        labelled = sum(count for (k, _), count in pairs.items() if k == kind)
        read = sum(count for (_, r), count in pairs.items() if r == kind)
        hit = pairs.get((kind, kind), 0)
        wrong = sorted(
            ((count, r) for (k, r), count in pairs.items() if k == kind and r != kind), reverse=True
        )
        rows.append(
            f"{kind:12} n={labelled:5} recall {hit / max(labelled, 1):.3f} "
            f"precision {hit / max(read, 1):.3f}  {', '.join(f'{r} {c}' for c, r in wrong[:4])}"
        )
    return "\n".join(rows)


def main() -> None:
    """Fit, or with ``--folds`` judge the fit on posts it has not seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labels", nargs="*", type=Path)
    parser.add_argument("--posts", type=Path, help="folder with the texts of labels without them")
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--data", type=Path, default=shipped_data())
    options = parser.parse_args()
    own = read_labels(options.data / POSTS)
    posts = [post for path in options.labels for post in read_labels(path, options.posts)]
    reader = sign_reader(options.data)
    if not options.folds:
        weights = fit([*own, *posts], reader)
        write_file(options.data / WEIGHTS, msgspec.json.encode(weights) + b"\n")
        return
    pairs: Counter[tuple[str, str]] = Counter()
    for fold in range(options.folds):
        rest = [post for number, post in enumerate(posts) if number % options.folds != fold]
        unseen = [post for number, post in enumerate(posts) if number % options.folds == fold]
        pairs.update(measure(LineModel(reader, fit([*own, *rest], reader)), unseen))
    print(table(dict(pairs)))  # noqa: T201 - its only output


if __name__ == "__main__":
    main()
