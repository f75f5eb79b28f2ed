"""Names that a reader meets: one meaning each, and paths in the documents that exist."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("kb", "ingest", "app")
# Participles and metaphors that say nothing of what they hold.
REFUSED = {
    "told",
    "kept",
    "found",
    "given",
    "said",
    "asked",
    "heard",
    "spoken",
    "wished",
    "press",
    "desk",
    "office",
    "voice",
    "patience",
    "telling",
    "kin",
    "kinship",
    "picture",
    "surroundings",
    "manners",
    "mending",
    "heap",
    "watching",
    "stuff",
    "things",
}
JSON_FIELDS = {"kb/chat/types.py: asked"}  # names that clients read stay
_PATH = re.compile(r"`((?:kb|ingest|app|data|tests)/[\w./-]*)`|\]\(((?:data|tests|kb)/[^)#]+)\)")


def modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    """Every module of the product with its path."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            yield str(path.relative_to(root)), ast.parse(path.read_text(encoding="utf-8"))


def names_of(tree: ast.Module) -> Iterator[str]:
    """Names of classes, functions, parameters and fields: those that others read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    yield item.target.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
            arguments = node.args
            yield from (
                item.arg
                for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            )


def test_a_class_name_is_defined_once(root: Path) -> None:
    """Whoever searches for a class finds one."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in modules(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_names_say_what_they_hold(root: Path) -> None:
    """No module, class, function, parameter or field is called by a word of `REFUSED` alone."""
    wrong = {
        f"{path}: {name}"
        for path, tree in modules(root)
        for name in (Path(path).stem, *names_of(tree))
        if name.strip("_").lower() in REFUSED
    }
    assert wrong == JSON_FIELDS


def test_paths_in_the_documents_exist(root: Path) -> None:
    """A file or folder that a document names is there."""
    documents = [*root.glob("*.md"), *(root / "data").rglob("README.md")]
    wrong = [
        f"{document.relative_to(root)}: {name}"
        for document in documents
        if document.name != "CHANGELOG.md"
        for match in _PATH.finditer(document.read_text(encoding="utf-8"))
        for name in match.groups()
        if name and not (root / name).exists()
    ]
    assert len(documents) > len(PACKAGES)
    assert wrong == []
