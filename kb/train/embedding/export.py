"""The files of a trained model: int8 rows, scales, idf, normaliser, pieces, config and manifest."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models

from kb.embed.static import (
    CONFIG,
    FILES,
    FORMAT,
    IDF,
    MANIFEST,
    NORMALISER,
    PIECES,
    QUESTION_FILES,
    QUESTION_ROWS,
    QUESTION_SCALES,
    QUESTIONS,
    ROWS,
    SCALES,
    content_hash,
)
from kb.files.atomic import write_file

INT8 = 127  # largest magnitude


def quantise(rows: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Rows as int8 with one float16 scale each: row ≈ int8 * scale."""
    largest = np.abs(rows).max(axis=1)
    scales = np.where(largest > 0, largest / INT8, 1).astype(np.float16)
    scaled = np.rint(rows / scales.astype(np.float32)[:, None])
    return np.clip(scaled, -INT8, INT8).astype(np.int8), scales


def write_model(
    folder: Path,
    *,
    name: str,
    rows: NDArray[np.float32],
    tokenizer: Tokenizer,
    idf: NDArray[np.float32],
    config: dict[str, Any],
) -> str:
    """Write the model aside, then move its files into `folder`; returns the content hash."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
        work = Path(aside)
        int8, scales = quantise(rows)
        np.save(work / ROWS, int8)
        np.save(work / SCALES, scales)
        np.save(work / IDF, idf.astype(np.float16))
        _save_questions(work, np.zeros(0, dtype=np.int64), rows[:0])
        write_tokenizer(work, tokenizer)
        _write_json(work / CONFIG, {"dimension": rows.shape[1], "tokens": len(rows), **config})
        content = _write_manifest(work, name)
        # the manifest goes last: until then a reader sees sizes that do not fit and refuses
        for file in (*FILES, MANIFEST):
            shutil.move(work / file, folder / file)
    return content


def write_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    """Write a unigram tokenizer's normaliser, and its vocabulary as sentencepiece reads it."""
    from sentencepiece import sentencepiece_model_pb2 as schema

    vocabulary: list[tuple[str, float]] = json.loads(tokenizer.to_str())["model"]["vocab"]
    (unknown, worth), *known = vocabulary
    bare = Tokenizer(models.Unigram([(unknown, worth)], unk_id=0))
    bare.normalizer, bare.pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer
    bare.save(str(folder / NORMALISER), pretty=False)
    kinds = schema.ModelProto.SentencePiece
    model = schema.ModelProto()
    model.pieces.add(piece=unknown, score=worth, type=kinds.UNKNOWN)
    for piece, score in known:
        model.pieces.add(piece=piece, score=score, type=kinds.NORMAL)
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    trainer.model_type = schema.TrainerSpec.UNIGRAM
    trainer.unk_id = 0
    trainer.bos_id = trainer.eos_id = trainer.pad_id = -1  # there are none
    normalizer.name = "identity"  # words come normalised
    normalizer.add_dummy_prefix = False
    normalizer.remove_extra_whitespaces = False
    normalizer.escape_whitespaces = False
    (folder / PIECES).write_bytes(model.SerializeToString(deterministic=True))


def replace_idf(folder: Path, idf: NDArray[np.float32]) -> str:
    """Give the model in `folder` another default idf; returns the new content hash."""
    name = json.loads((folder / MANIFEST).read_text("utf-8"))["name"]
    array = io.BytesIO()
    np.save(array, idf.astype(np.float16))
    write_file(folder / IDF, array.getvalue())
    return _write_manifest(folder, name)


def replace_question_rows(folder: Path, ids: NDArray[np.int64], rows: NDArray[np.float32]) -> str:
    """Give the model in `folder` rows of questions for the tokens `ids`; returns the content hash.

    `ids` are ascending, one a row.
    """
    name = json.loads((folder / MANIFEST).read_text("utf-8"))["name"]
    with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
        _save_questions(Path(aside), ids, rows)
        for file in QUESTION_FILES:
            shutil.move(Path(aside) / file, folder / file)
    return _write_manifest(folder, name)


def _save_questions(folder: Path, ids: NDArray[np.int64], rows: NDArray[np.float32]) -> None:
    int8, scales = quantise(rows) if len(rows) else (rows.astype(np.int8), rows[:, 0])
    np.save(folder / QUESTIONS, ids)
    np.save(folder / QUESTION_ROWS, int8)
    np.save(folder / QUESTION_SCALES, scales.astype(np.float16))


def _write_manifest(folder: Path, name: str) -> str:
    content = content_hash(folder)
    sizes = {file: (folder / file).stat().st_size for file in FILES}
    manifest = {"format": FORMAT, "name": name, "content": content, "bytes": sizes}
    _write_json(folder / MANIFEST, manifest)
    return content


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", "utf-8")
