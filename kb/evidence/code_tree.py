"""Pasted Python as a tree of statements, by `ast` where it parses, else by its indentation.

People paste fragments, diffs, lines of an interpreter and code with lines left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

MAX_LINES = 2000
LINE_CHARS = 1000
MAX_CHARS = 100_000
MAX_DEPTH = 60  # Python itself takes 100 levels of blocks
GAP_LINES = 3  # a larger gap between lines of code parts two fragments
CONDITION_CHARS = 400
STATEMENT_LINES = 40  # a statement over more lines is data
BLOCKS = ("if", "elif", "else", "for", "while", "with", "try", "except", "finally", "def", "class")
QUOTE_CHARS = 300

_PROMPT = re.compile(r"^(?:>>> ?|\.\.\. ?|In \[[0-9]+\]: ?)")
_DIFF_HEADER = re.compile(r"^(?:diff --git |@@ |\+\+\+ |--- |index [0-9a-f]{7})")
_DIFF_LINE = re.compile(r"^[+\- ]")
_HEADER = re.compile(
    r"(?:async )?(if|elif|else|for|while|with|try|except|finally|def|class)\b(.*)", re.DOTALL
)
_CALL = re.compile(
    r"(?<![\w.])((?:[A-Za-z_]\w*(?:\[[^\[\]\n]{0,40}\])?\.)*[A-Za-z_]\w*|(?<=[)\]])\.[A-Za-z_]\w*)\("
)
_STRING = re.compile(
    r"'''(?:[^'\\]|\\.|'(?!''))*'''|\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*\"\"\""
    r"|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"",
    re.DOTALL,
)
_COMMENT = re.compile(r"(?<!\S)#.*|(?<=[\w)\]:,]) *#.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeStatement:
    """A statement with the statements inside it.

    `line` is its number in the input, `text` its first line, `code` all of its own text without
    strings, `calls` the dotted names it calls in the order of the text, `keyword` that of a block.
    """

    line: int
    text: str
    code: str
    keyword: str = ""
    calls: tuple[str, ...] = ()
    body: tuple[CodeStatement, ...] = ()


def all_within(statement: CodeStatement) -> list[CodeStatement]:
    """A statement and all inside it, functions defined there aside."""
    inner = [s for child in statement.body if child.keyword != "def" for s in all_within(child)]
    return [statement, *inner]


def without_comment(line: str) -> str:
    """A line of code without the comment at its end."""
    return _COMMENT.sub("", line)


def lines_in_force(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines as they are in force: prompts and marks of a diff taken off, in bounds."""
    is_diff = any(_DIFF_HEADER.match(text) for _, text in lines)
    size = 0
    for number, text in lines[:MAX_LINES]:
        size += len(text)
        if size > MAX_CHARS:
            return
        own = text[:LINE_CHARS].expandtabs(4)
        if is_diff:
            if _DIFF_HEADER.match(own) or own.startswith("-"):
                continue
            own = own[1:] if _DIFF_LINE.match(own) else own
        yield number, _PROMPT.sub("", own)


def fragments(lines: Sequence[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Runs of lines without a large gap."""
    fragment: list[tuple[int, str]] = []
    for number, text in lines:
        if fragment and number - fragment[-1][0] > GAP_LINES:
            yield fragment
            fragment = []
        fragment.append((number, text))
    if fragment:
        yield fragment


def statements(lines: Sequence[tuple[int, str]]) -> tuple[CodeStatement, ...]:
    """The statements of a fragment: by `ast` where it parses, else by its indentation."""
    filled = [text for _, text in lines if text.strip()]
    if not filled:
        return ()
    margin = min(len(text) - len(text.lstrip()) for text in filled)
    lines = [(number, text[margin:]) for number, text in lines]
    try:
        # Escapes tell nothing here, and wrong ones would be warned of.
        tree = ast.parse(re.sub(r"\\[^\n]", "__", "\n".join(text for _, text in lines)))
        return tuple(_from_ast(tree.body, lines, depth=0))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return tuple(_by_indentation(_logical_lines(lines)))


def _from_ast(
    nodes: Sequence[ast.stmt], lines: Sequence[tuple[int, str]], *, depth: int
) -> Iterator[CodeStatement]:
    if depth > MAX_DEPTH:
        raise RecursionError
    for node in nodes:
        yield from _statement(node, lines, depth)


def _statement(
    node: ast.stmt, lines: Sequence[tuple[int, str]], depth: int
) -> Iterator[CodeStatement]:
    def block(keyword: str, line: int, body: Sequence[ast.stmt], end: int) -> CodeStatement:
        made = _made(lines, line, max(line, end), keyword)
        return replace(made, body=tuple(_from_ast(body, lines, depth=depth + 1)))

    line = node.lineno
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        for decorator in node.decorator_list:
            yield _made(lines, decorator.lineno, decorator.lineno)
        keyword = "class" if isinstance(node, ast.ClassDef) else "def"
        yield block(keyword, line, node.body, line)
        return
    body: Sequence[ast.stmt] = getattr(node, "body", ())
    if not body:
        yield _made(lines, line, node.end_lineno or line, column=node.col_offset)
        return
    keyword = {
        ast.If: "if",
        ast.For: "for",
        ast.AsyncFor: "for",
        ast.While: "while",
        ast.Try: "try",
    }.get(type(node), "with")
    yield block(keyword, line, body, _header_end(node, body))
    for handler in getattr(node, "handlers", ()):
        yield block("except", handler.lineno, handler.body, handler.lineno)
    orelse: Sequence[ast.stmt] = getattr(node, "orelse", ())
    if len(orelse) == 1 and isinstance(orelse[0], ast.If) and isinstance(node, ast.If):
        first, *rest = _statement(orelse[0], lines, depth + 1)
        is_elif = lines[orelse[0].lineno - 1][1].lstrip().startswith("elif")
        yield replace(first, keyword="elif") if is_elif else first
        yield from rest
    elif orelse:
        yield block("else", orelse[0].lineno, orelse, orelse[0].lineno)
    if final := getattr(node, "finalbody", ()):
        yield block("finally", final[0].lineno, final, final[0].lineno)


def _header_end(node: ast.stmt, body: Sequence[ast.stmt]) -> int:
    parts = [getattr(node, name, None) for name in ("test", "iter")]
    ends = [part.end_lineno for part in parts if isinstance(part, ast.expr) and part.end_lineno]
    if isinstance(node, (ast.With, ast.AsyncWith)):
        ends += [item.context_expr.end_lineno or node.lineno for item in node.items]
    return min(max(ends, default=node.lineno), body[0].lineno)


def _made(
    lines: Sequence[tuple[int, str]], first: int, last: int, keyword: str = "", *, column: int = 0
) -> CodeStatement:
    """A statement of the lines `first` to `last`, counted from 1 in the fragment.

    It begins at `column` of the first line, in bytes, as `ast` counts.
    """
    number, text = lines[first - 1]
    begins = text.encode()[column:].decode(errors="replace")
    others = (text for _, text in lines[first : min(last, first + STATEMENT_LINES)])
    return _with_calls(number, text, "\n".join([begins, *others]), keyword)


def _with_calls(number: int, text: str, whole: str, keyword: str) -> CodeStatement:
    code = _COMMENT.sub("", _STRING.sub(_short_string, whole))
    own = code
    if keyword in BLOCKS:  # of a block on one line what stands behind the colon is its body
        head, colon, _ = _split_header(code)
        own = head if colon else code
    calls = tuple(f"{match[1]}(" for match in _CALL.finditer(own))
    return CodeStatement(
        line=number,
        text=text.strip()[:QUOTE_CHARS],
        code=own.strip()[:CONDITION_CHARS],
        keyword=keyword,
        calls=calls,
    )


def _short_string(match: re.Match[str]) -> str:
    """A short string stays (``os.environ["RANK"]``), a long one tells nothing."""
    return match[0] if len(match[0]) <= 24 and "\n" not in match[0] else '""'


def _split_header(code: str) -> tuple[str, str, str]:
    """A block's header, its colon, and what stands behind it on the line."""
    depth = 0
    for place, char in enumerate(code):
        depth += (char in "([{") - (char in ")]}")
        if char == ":" and depth <= 0:
            return code[:place], ":", code[place + 1 :]
    return code, "", ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _LogicalLine:
    number: int
    indent: int
    text: str
    whole: str


def _logical_lines(lines: Sequence[tuple[int, str]]) -> list[_LogicalLine]:
    """Lines with their continuations, blank ones and comments left out."""
    logical: list[_LogicalLine] = []
    held: list[str] = []
    first = (0, "")
    depth = 0
    for number, text in lines:
        bare = _COMMENT.sub("", _STRING.sub('""', text))
        if not held and not bare.strip():
            continue
        if not held:
            first = (number, text)
        held.append(text)
        depth = max(0, depth + sum((c in "([{") - (c in ")]}") for c in bare))
        goes_on = depth > 0 or bare.rstrip().endswith("\\")
        if goes_on and len(held) < STATEMENT_LINES:
            continue
        indent = len(first[1]) - len(first[1].lstrip())
        logical.append(
            _LogicalLine(number=first[0], indent=indent, text=first[1], whole="\n".join(held))
        )
        held, depth = [], 0
    return logical


def _by_indentation(lines: Sequence[_LogicalLine], depth: int = 0) -> Iterator[CodeStatement]:
    """Statements of lines whose blocks are told by their indentation alone."""
    place = 0
    while place < len(lines):
        line = lines[place]
        end = place + 1
        while end < len(lines) and lines[end].indent > line.indent:
            end += 1
        inner = lines[place + 1 : end]
        header = _HEADER.match(line.text.strip())
        statement = _with_calls(line.number, line.text, line.whole, header[1] if header else "")
        _, colon, behind = _split_header(_STRING.sub(_short_string, line.whole))
        if header and colon and behind.strip() and not _COMMENT.match(behind.strip()):
            inline = _with_calls(line.number, line.text, behind.strip(), "")
            statement = replace(statement, body=(inline,))
        elif header and inner and depth < MAX_DEPTH:
            statement = replace(statement, body=tuple(_by_indentation(inner, depth + 1)))
        yield statement
        if not header:
            yield from _by_indentation(inner, depth) if depth < MAX_DEPTH else ()
        place = end
