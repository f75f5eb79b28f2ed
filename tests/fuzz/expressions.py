"""Every backtracking expression of the product: those in the code, and those made of `data/`."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from kb.settings import shipped_data

ROOT = Path(__file__).resolve().parent.parent.parent
OFFLINE = ("kb/train/", "kb/evaluation/")  # they read our own files
CALLS = frozenset(
    {"compile", "search", "match", "fullmatch", "sub", "subn", "findall", "finditer", "split"}
)
FROM_START = frozenset({"match", "fullmatch"})
WHOLE = frozenset({"fullmatch", "passed"})


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression, where it stands, and how it is asked.

    `from_start` is only tried at the text's beginning, `whole` also of the whole text: what has
    to reach an end may try all ways to it where the first one would do elsewhere.
    """

    where: str
    pattern: re.Pattern[str]
    from_start: bool = False
    whole: bool = True

    def run(self, text: str) -> None:
        """Ask all of the text."""
        pattern: re.Pattern[Any] = self.pattern
        subject: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
        if self.whole:
            pattern.fullmatch(subject)
        if self.from_start:
            pattern.match(subject)
        else:
            for _ in pattern.finditer(subject):
                pass


def in_code() -> tuple[list[Expression], list[str]]:
    """The expressions of the product's modules, and the calls whose expression is made later."""
    sources = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for package in ("kb", "ingest", "app")
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    sources = {name: text for name, text in sources.items() if not name.startswith(OFFLINE)}
    everywhere = _uses(sources.values())
    found: list[Expression] = []
    later: list[str] = []
    for name, text in sources.items():
        if "import re\n" not in text:
            continue
        module = importlib.import_module(name.removesuffix(".py").replace("/", "."))
        here = _uses([text])
        for label, pattern in _held(module):
            uses = here if label.startswith("_") else everywhere
            methods = uses[label]
            whole = not methods.isdisjoint(WHOLE)
            found.append(Expression(f"{name}:{label}", pattern, methods <= FROM_START, whole))
        for call in _inline_calls(text):
            method = call.func.attr  # type: ignore[attr-defined]
            place = f"{name}: {ast.unparse(call)[:60]}"
            try:
                made = eval(ast.unparse(call.args[0]), dict(vars(module)))  # noqa: S307 - our code
            except NameError:
                later.append(place)
                continue
            flags = next((k.value for k in call.keywords if k.arg == "flags"), None)
            flags = (
                call.args[2]
                if method in ("search", "match", "fullmatch") and len(call.args) > 2
                else flags
            )
            number = eval(ast.unparse(flags), {"re": re}) if flags is not None else 0  # noqa: S307
            pattern = re.compile(made, number)
            found.append(Expression(place, pattern, method in FROM_START, method in WHOLE))
    return found, later


def _uses(sources: Iterable[str]) -> dict[str, set[str]]:
    """How the names of expressions are used: methods called, or ``passed`` on."""
    uses: dict[str, set[str]] = defaultdict(set)
    for text in sources:
        for name, method in re.findall(r"\b(_?[A-Z][A-Z0-9_]*)\.(\w+)\(", text):
            uses[name].add(method if method in CALLS else "passed")
        for name in re.findall(r"\b(_?[A-Z][A-Z0-9_]*)\b(?!\.\w+\(| *(?::[^=\n]*)?= )", text):
            uses[name].add("passed")
    return uses


def _held(module: ModuleType) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The expressions that a module's own names hold, also inside tuples and dicts."""
    own = Path(str(module.__file__)).read_text(encoding="utf-8")
    for name, value in vars(module).items():
        if re.search(rf"^{re.escape(name)}(?:: .*?)? = ", own, re.MULTILINE):
            yield from ((name, pattern) for pattern in _patterns_in(value, 0))


def _patterns_in(value: object, depth: int) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth < 4 and isinstance(value, dict):
        for item in (*value.keys(), *value.values()):
            yield from _patterns_in(item, depth + 1)
    elif depth < 4 and isinstance(value, (list, tuple, frozenset)):
        for item in value:
            yield from _patterns_in(item, depth + 1)
    elif depth < 4 and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for field in value.__dataclass_fields__:
            yield from _patterns_in(getattr(value, field), depth + 1)


def _inline_calls(text: str) -> Iterator[ast.Call]:
    """Calls of `re` inside functions."""
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for node in ast.walk(function):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.func.attr in CALLS
            ):
                yield node


@contextmanager
def _recorded(found: list[Expression], where: str) -> Iterator[None]:
    compile_, made = re.compile, set()

    def record(text: str, flags: int = 0) -> re.Pattern[str]:
        pattern = compile_(text, flags)
        if pattern not in made:
            made.add(pattern)
            found.append(Expression(f"{where}:{str(text)[:12]}", pattern))
        return pattern

    re.compile = record  # type: ignore[assignment]
    try:
        yield
    finally:
        re.compile = compile_


def in_data() -> list[Expression]:
    """The expressions that the loaders of `data/` compile for a backtracking engine."""
    from ingest.wordlists import load_word_lists
    from kb.evidence import kernel, source_code, stacks
    from kb.knowledge.load import load_knowledge
    from kb.logs.scan.scanner import capture_expression, regex_flags

    knowledge = load_knowledge(shipped_data())
    loaders: dict[str, Callable[[], object]] = {
        "data/stack_places.yaml": stacks._places.__wrapped__,
        "data/kernel_lines.yaml": kernel._rules.__wrapped__,
        "data/code_calls.yaml": source_code._words.__wrapped__,
        "data/ingest": lambda: load_word_lists(shipped_data()),
    }
    found: list[Expression] = []
    for where, load in loaders.items():
        with _recorded(found, where):
            load()
    for pattern in knowledge.patterns:
        where = f"data/patterns.yaml:{pattern.id}"
        finder = re.compile(pattern.regex, regex_flags(pattern))
        found.append(Expression(where, finder, whole=False))  # both are searched for
        capture = capture_expression(pattern)
        if capture is not None:
            found.append(Expression(f"{where}:capture", capture, whole=False))
    return found
