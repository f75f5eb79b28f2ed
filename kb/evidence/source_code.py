"""What pasted training code shows: what only some ranks do, and what a rank does on its own.

`kb.evidence.code_tree` reads the statements. data/code_calls.yaml names the calls and conditions,
data/facts.yaml says what each observation weighs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from kb.evidence.code_tree import (
    MAX_DEPTH,
    QUOTE_CHARS,
    CodeStatement,
    all_within,
    fragments,
    lines_in_force,
    statements,
    without_comment,
)
from kb.evidence.reading import expression
from kb.knowledge.load import read_yaml
from kb.settings import shipped_data
from kb.types.incident import Fact, TextLine
from kb.types.vocabulary import LineKind

Role = Literal["main", "others", "data", ""]

_EXIT = re.compile(r"\s*(return|continue|break)\b")
_NEGATED = re.compile(r"\bnot (?:\w+\.)*(?:is_\w+|main_process|master_process)")
_WORD = re.compile(r"[A-Za-z_]\w{2,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeCalls:
    """The words of data/code_calls.yaml: calls and conditions, as expressions of `re`."""

    collectives: tuple[re.Pattern[str], ...]
    collective_arguments: tuple[re.Pattern[str], ...]
    sharded: re.Pattern[str]
    sharded_collectives: tuple[re.Pattern[str], ...]
    gathered: re.Pattern[str]
    gradient_calls: tuple[re.Pattern[str], ...]
    long_work: tuple[re.Pattern[str], ...]
    main_rank: tuple[re.Pattern[str], ...]
    other_ranks: tuple[re.Pattern[str], ...]
    group_rank: re.Pattern[str]
    data_condition: tuple[re.Pattern[str], ...]
    shared_condition: re.Pattern[str]
    loop_end: re.Pattern[str]
    process_group: re.Pattern[str]
    default_device: re.Pattern[str]
    device_choice: re.Pattern[str]
    random_order: tuple[re.Pattern[str], ...]
    unsorted_order: tuple[re.Pattern[str], ...]
    sorted_order: re.Pattern[str]
    shared_seed: re.Pattern[str]
    seed_of_a_rank: re.Pattern[str]
    shards: re.Pattern[str]
    forward_functions: re.Pattern[str]
    branch_inputs: re.Pattern[str]
    module_call: re.Pattern[str]
    same_branch: re.Pattern[str]
    unused_off: re.Pattern[str]


class _CodeWords:
    """The expressions of `CodeCalls`, compiled: those of one field together."""

    def __init__(self, calls: CodeCalls) -> None:
        self._patterns = {
            name: re.compile("|".join(f"(?:{each.pattern})" for each in _expressions(calls, name)))
            for name in CodeCalls.__dataclass_fields__
        }

    def match(self, name: str, text: str) -> bool:
        """Whether one of the expressions of field `name` is in `text`."""
        return self._patterns[name].search(text) is not None


def _expressions(calls: CodeCalls, name: str) -> tuple[re.Pattern[str], ...]:
    value: re.Pattern[str] | tuple[re.Pattern[str], ...] = getattr(calls, name)
    return value if isinstance(value, tuple) else (value,)


@lru_cache(maxsize=1)
def _words() -> _CodeWords:
    path = shipped_data() / "code_calls.yaml"
    return _CodeWords(read_yaml(path, CodeCalls, decode=expression))


def code_facts(lines: Sequence[TextLine], words: str = "") -> tuple[Fact, ...]:
    """Facts of the code among the `lines` of an input, each fact once.

    Scripts, configurations and a person's `words` tell whether parameters are sharded.
    """
    by_file: dict[str, list[tuple[int, str]]] = {}
    for line in lines:
        if line.kind is LineKind.CODE:
            by_file.setdefault(line.file, []).append((line.number, line.text))
    if not by_file:
        return ()
    context = "\n".join([words, *(line.text for line in lines)])
    facts: dict[str, Fact] = {}
    for file, code in by_file.items():
        for fact in read_code(code, file, context=context):
            facts.setdefault(fact.name, fact)
    return tuple(facts.values())


def read_code(
    lines: Sequence[tuple[int, str]], file: str = "", *, context: str = ""
) -> tuple[Fact, ...]:
    """Facts of the code in `lines`, each with its number in the input: each fact once.

    The facts are in the order of their lines, quoted as they stand there. `context` is what else
    tells how the model is shared out among the ranks.
    """
    code = list(lines_in_force(lines))
    if not code:
        return ()
    words = _words()
    whole = "\n".join(text for _, text in code)
    facts: dict[str, Fact] = {}
    for fragment in fragments(code):
        tree = statements(fragment)
        reader = _ScopeReader(words, tree, f"{context}\n{whole}")
        for name, statement, detail in reader.findings():
            facts.setdefault(name, _fact(name, statement.line, statement.text, detail, file))
    for name, line, text in _of_the_whole(words, code, whole):
        facts.setdefault(name, _fact(name, line, text, "", file))
    return tuple(sorted(facts.values(), key=lambda fact: (fact.line, fact.name)))


def _fact(name: str, line: int, text: str, detail: str, file: str) -> Fact:
    return Fact(name=name, line=line, quote=text.strip()[:QUOTE_CHARS], detail=detail, file=file)


# --- from statements to findings -----------------------------------------------------------------

_Finding = tuple[str, CodeStatement, str]


class _ScopeReader:
    """Reads the functions of a fragment, and what stands outside them as one more."""

    def __init__(self, words: _CodeWords, tree: Sequence[CodeStatement], whole: str) -> None:
        self._words = words
        self._whole = whole
        self._is_sharded = words.match("sharded", whole)
        self._gathering: frozenset[str] = frozenset()
        self._scopes = [_Scope("", tuple(s for s in tree if s.keyword not in ("def", "class")))]
        self._scopes += _functions(tree)
        self._gathering = frozenset(
            scope.name
            for scope in self._scopes
            if scope.name and any(map(self._collective, self._on_all_ranks(scope.body)))
        )

    def findings(self) -> Iterator[_Finding]:
        """All findings, scope by scope."""
        for scope in self._scopes:
            around: Role = "main" if self._words.match("main_rank", scope.decorator) else ""
            yield from self._conditional_calls(scope.body, around)
            yield from self._early_exits(scope.body, in_loop=False)
            yield from self._skipped_steps(scope.body, in_loop=False)
            if self._words.match("forward_functions", scope.name):
                yield from self._branches(scope.body)

    def _on_all_ranks(self, body: Sequence[CodeStatement]) -> Iterator[CodeStatement]:
        """The statements that no condition on the rank guards."""
        for statement in body:
            guarded = statement.keyword in ("if", "elif", "else") and (
                statement.keyword == "else" or self.role(statement) in ("main", "others")
            )
            if not guarded and statement.keyword not in ("def", "class"):
                yield statement
                yield from self._on_all_ranks(statement.body)

    def role(self, statement: CodeStatement) -> Role:
        """On which ranks the condition of a statement holds, or that it depends on data."""
        match, condition = self._words.match, statement.code
        if match("group_rank", condition):
            return ""
        if match("other_ranks", condition):
            return "main" if " or " in condition and match("main_rank", condition) else "others"
        if match("main_rank", condition):
            return "others" if _NEGATED.search(condition) else "main"
        is_shared = match("shared_condition", condition)
        return "data" if not is_shared and match("data_condition", condition) else ""

    # --- what only some ranks call ---

    def _conditional_calls(self, body: Sequence[CodeStatement], around: Role) -> Iterator[_Finding]:
        calls = list(self._under_ranks(body, around))
        sides: dict[str, Counter[Role]] = {}
        for role, call, statement in calls:
            if self._collective(statement):
                sides.setdefault(call, Counter())[role] += 1
        for role, call, statement in calls:
            if self._collective(statement):
                counts = sides[call]
                if counts["main"] != counts["others"]:
                    yield "code_rank_conditional_collective", statement, call
            elif role == "main" and self._words.match("long_work", f"{call}("):
                yield "code_rank_conditional_work", statement, call

    def _under_ranks(
        self, body: Sequence[CodeStatement], around: Role
    ) -> Iterator[tuple[Role, str, CodeStatement]]:
        """Each call that some ranks make, with the ranks that do."""
        before: Role = ""
        for statement in body:
            role = self._role_of_block(statement, before)
            if statement.keyword in ("if", "elif", "else"):
                before = role
            elif statement.keyword != "":
                before = ""
            here: Role = role or around
            if here in ("main", "others") and not statement.keyword:
                call = self._call_of_interest(statement)
                if call:
                    yield here, call, statement
            if statement.keyword not in ("def", "class"):
                yield from self._under_ranks(statement.body, here)

    def _role_of_block(self, statement: CodeStatement, before: Role) -> Role:
        if statement.keyword in ("if", "elif"):
            role = self.role(statement)
            return role if role in ("main", "others") else ""
        if statement.keyword == "else":
            return {"main": "others", "others": "main"}.get(before, "")  # type: ignore[return-value]
        return ""

    def _call_of_interest(self, statement: CodeStatement) -> str:
        """The collective of a statement, else its long work; empty for neither."""
        collective = self._collective(statement)
        if collective:
            return collective
        return next(
            (call[:-1] for call in statement.calls if self._words.match("long_work", call)), ""
        )

    def _collective(self, statement: CodeStatement) -> str:
        """The first call of a statement that all ranks have to make."""
        match = self._words.match
        gathers = self._is_sharded and not match("gathered", statement.code)
        for call in statement.calls:
            dotted = call[:-1]
            if (
                match("collectives", call)
                or (gathers and match("sharded_collectives", call))
                or dotted.removeprefix("self.") in self._gathering
            ):
                return dotted
        if match("collective_arguments", statement.code) and statement.calls:
            return statement.calls[0][:-1]
        return ""

    # --- who leaves before the others ---

    def _early_exits(self, body: Sequence[CodeStatement], *, in_loop: bool) -> Iterator[_Finding]:
        for place, statement in enumerate(body):
            inside = in_loop or statement.keyword in ("for", "while")
            if statement.keyword in ("if", "elif"):
                yield from self._exit(statement, body, place, in_loop=in_loop)
                yield from self._called_for_some_data(statement, body, place)
            if statement.keyword not in ("def", "class"):
                yield from self._early_exits(statement.body, in_loop=inside)

    def _exit(
        self, statement: CodeStatement, body: Sequence[CodeStatement], place: int, *, in_loop: bool
    ) -> Iterator[_Finding]:
        role = self.role(statement)
        leaving = [_EXIT.match(child.code) for child in statement.body]
        kinds = {match[1] for match in leaving if match}
        if not role or not kinds or (role == "data" and not in_loop):
            return
        later = [s for other in body[place + 1 :] for s in all_within(other)]
        # Who leaves a step of a loop misses its gradients, too.
        reach: Role = "data" if in_loop and kinds <= {"continue", "break"} else role
        meeting = next((call for s in later if (call := self._meets(s, reach))), "")
        if not meeting or (role == "data" and self._agreed(statement, body[:place])):
            return
        shown = statement
        yield ("code_exit_on_data" if role == "data" else "code_exit_on_rank"), shown, meeting

    def _called_for_some_data(
        self, statement: CodeStatement, body: Sequence[CodeStatement], place: int
    ) -> Iterator[_Finding]:
        """A call of all ranks that a rank makes or not by its own data."""
        if self.role(statement) != "data" or self._agreed(statement, body[:place]):
            return
        beside = body[place + 1 : place + 2]
        other = beside[0] if beside and beside[0].keyword in ("else", "elif") else None
        elsewhere = {_last(self._meets(s, "data")) for s in all_within(other)} if other else set()
        for inner in all_within(statement)[1:]:
            call = self._meets(inner, "data")
            if call and _last(call) not in elsewhere:
                yield "code_data_conditional_call", inner, call
                return

    def _meets(self, statement: CodeStatement, role: Role) -> str:
        """The call of a statement where the ranks meet; gradients count where data decides."""
        collective = self._collective(statement)
        if collective or role != "data":
            return collective
        calls = (call[:-1] for call in statement.calls if self._words.match("gradient_calls", call))
        return next(calls, "")

    def _agreed(self, statement: CodeStatement, before: Sequence[CodeStatement]) -> bool:
        """Whether the ranks shared what the condition looks at before they look at it."""
        names = set(_WORD.findall(statement.code)) - {"not", "and", "torch", "item", "continue"}
        shared = (s for other in before for s in all_within(other) if self._collective(s))
        return any(names & set(_WORD.findall(s.code)) for s in shared)

    def _skipped_steps(self, body: Sequence[CodeStatement], *, in_loop: bool) -> Iterator[_Finding]:
        tried: CodeStatement | None = None
        for statement in body:
            if statement.keyword == "try":
                tried = statement
            elif statement.keyword == "except" and tried is not None and in_loop:
                inside = [s for child in tried.body for s in all_within(child)]
                meeting = next((call for s in inside if (call := self._meets(s, "data"))), "")
                handled = [s for child in statement.body for s in all_within(child)]
                goes_on = not any(s.code.startswith("raise") for s in handled) or any(
                    s.code.startswith("continue") for s in handled
                )
                if meeting and goes_on and not self._words.match("loop_end", statement.code):
                    yield "code_skipped_step", statement, meeting
            if statement.keyword not in ("def", "class"):
                inside_loop = in_loop or statement.keyword in ("for", "while")
                yield from self._skipped_steps(statement.body, in_loop=inside_loop)

    # --- what some data does not reach ---

    def _branches(self, body: Sequence[CodeStatement]) -> Iterator[_Finding]:
        match = self._words.match
        detail = "find_unused_parameters=False" if match("unused_off", self._whole) else ""
        for statement in (s for top in body for s in all_within(top)):
            is_same = match("same_branch", statement.code)
            if statement.keyword not in ("if", "elif") or is_same:
                continue
            if not match("branch_inputs", statement.code) and self.role(statement) != "data":
                continue
            inside = (call for s in all_within(statement)[1:] for call in s.calls)
            module = next((call[:-1] for call in inside if match("module_call", call)), "")
            if module:
                yield "code_branch_in_forward", statement, ", ".join(filter(None, [module, detail]))


def _last(call: str) -> str:
    """The last part of a dotted name."""
    return call.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class _Scope:
    """A function, or what stands outside of all: its name, statements and decorators."""

    name: str
    body: tuple[CodeStatement, ...]
    decorator: str = ""


def _functions(tree: Sequence[CodeStatement], depth: int = 0) -> Iterator[_Scope]:
    """The functions of a fragment, methods and inner ones too."""
    decorator = ""
    for statement in tree:
        if statement.keyword == "def":
            match = re.search(r"\bdef\s+(\w+)", statement.code)
            yield _Scope(match[1] if match else "", statement.body, decorator)
        decorator = statement.code if statement.code.startswith("@") else ""
        if depth < MAX_DEPTH:
            yield from _functions(statement.body, depth + 1)


# --- what the code as a whole lacks --------------------------------------------------------------


def _of_the_whole(
    words: _CodeWords, code: Sequence[tuple[int, str]], whole: str
) -> Iterator[tuple[str, int, str]]:
    """Findings that are told by what stands nowhere: a device chosen, a seed that all share."""
    bare = [(number, without_comment(text), text) for number, text in code]
    text = "\n".join(line for _, line, _ in bare)
    if words.match("process_group", text) and not words.match("device_choice", text):
        for number, line, quote in bare:
            if words.match("default_device", line):
                yield "code_no_set_device", number, quote
                break
    if not words.match("shards", text):
        return
    is_seeded = any(
        words.match("shared_seed", line) and not words.match("seed_of_a_rank", line)
        for _, line, _ in bare
    )
    is_sorted = words.match("sorted_order", text)
    for number, line, quote in bare:
        at_random = words.match("random_order", line) and not is_seeded
        if at_random or (words.match("unsorted_order", line) and not is_sorted):
            yield "code_unseeded_order", number, quote
            break
