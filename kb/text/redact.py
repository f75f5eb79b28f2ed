"""Removing secrets from text before anything is stored, shown or returned.

A pasted log passes here in `kb.logs.scan.events` (lines and captures) and `kb.logs.reader` (a
person's words); evidence files in `kb.evidence.collect`. The rules stand in `kb.text.secret_*` and
`kb.text.personal_data`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain, islice, pairwise

from kb.text.personal_data import PERSONAL_RULES
from kb.text.secret_blocks import ContinuedSecret, SecretManifest
from kb.text.secret_code import CODE_RULES
from kb.text.secret_commands import COMMAND_RULES
from kb.text.secret_options import OPTION_RULES
from kb.text.secret_rule import SecretRule
from kb.text.secret_sentences import SENTENCE_RULES
from kb.text.secret_settings import SETTING_RULES
from kb.text.secret_tables import SecretTable
from kb.text.secret_tokens import TOKEN_RULES
from kb.text.secret_values import VALUE_RULES

PIECE = 5000  # characters; a match may be 4,096 of a value and what stands before it
_ENDINGS = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]{0,7}){1,2}\Z")
_NAME_SIGN = re.compile(r"[^A-Za-z0-9]")
# Of a gate's automaton, as far as it needs them: with re2's own 8 MiB the states of some hundred
# words are thrown away and made again in a text of many kinds of lines, in up to sixty times the
# time.
GATE_BYTES = 64 << 20
MAX_NAME = 1024  # characters of a path in which words are looked for; a name has 255
# What a reader does not see and what may stand in the middle of a secret: colours, and the
# characters of no width.
_INVISIBLE = re.compile("\x1b\\[[0-9;]{0,32}[mKGHJ]|[\u200b-\u200d\u2060\ufeff\u00ad]")
# The letters, digits and signs of full width, each with its ASCII form; the punctuation of Chinese
# sentences stays as it is.
_WIDE = {n + 0xFEE0: n for n in range(0x21, 0x7F) if chr(n) not in "!(),:;?~"}
_IS_WIDE = re.compile(f"[{''.join(map(chr, _WIDE))}]")
_Rule = SecretRule | SecretManifest | SecretTable | ContinuedSecret
_GROUPS: tuple[tuple[_Rule, ...], ...] = (
    TOKEN_RULES,
    (SecretManifest(),),
    # Before the values: what stands between a name and its value would be taken for it.
    CODE_RULES,
    SETTING_RULES,
    OPTION_RULES,
    VALUE_RULES,
    COMMAND_RULES,
    SENTENCE_RULES,
    (SecretTable(),),
    PERSONAL_RULES,
    (ContinuedSecret(),),
)
_RULES: tuple[_Rule, ...] = tuple(chain.from_iterable(_GROUPS))


def _gate(*expressions: str) -> Callable[[str], object]:
    """Tells whether any of the expressions matches, in one pass and in any case of letters."""
    import re2

    options = re2.Options()
    options.case_sensitive = False
    options.never_capture = True
    options.max_mem = GATE_BYTES
    # A set of one: it only says yes or no, in half the time.
    gate = re2.Set.SearchSet(options)
    gate.Add("|".join(sorted(set(expressions))))
    gate.Compile()
    match: Callable[[str], object] = gate.Match
    return match


# Whether any rule can match: nearly all lines of a log hold no secret. The gate is looser than the
# rules, so it changes nothing but the time they take; and so is what each group and each
# rule asks for itself.
_suspicious = _gate(*(rule.gate for rule in _RULES))
_gates = tuple(_gate(rule.closer) for rule in _RULES)
_group_gates = tuple(_gate(*(rule.gate for rule in group)) for group in _GROUPS)
# The letters beyond ASCII that count as Latin ones where case is ignored, for `re` and not for the
# gate, and what has no UTF-8. https://docs.python.org/3/library/re.html#re.IGNORECASE
_BEYOND_THE_GATE = re.compile("[\u0130\u0131\u017f\u212a\ud800-\udfff]")


def is_clean(text: str) -> bool:
    """Whether nothing in `text` can be a secret; then no part of it holds one either."""
    if text.isascii():
        return not _suspicious(text) and ("\x1b" not in text or not _suspicious(_plain(text)))
    if _BEYOND_THE_GATE.search(text) or _suspicious(text):
        return False
    plain = _plain(text)
    return plain is text or not _suspicious(plain)


def _plain(text: str) -> str:
    """The text as it is read: without what is invisible, in letters of one width."""
    if text.isascii():
        return _INVISIBLE.sub("", text) if "\x1b" in text else text
    if _INVISIBLE.search(text):
        text = _INVISIBLE.sub("", text)
    return text.translate(_WIDE) if _IS_WIDE.search(text) else text


def redact(text: str) -> tuple[str, int]:
    """Replace secrets by ``<redacted:kind>``; returns the text and how many were replaced.

    Found are private keys, cloud, code-hosting, chat and model-hub tokens, JSON web tokens,
    authorisation headers, URLs with credentials, values of password-like keys, passwords of
    commands, e-mail addresses, phone and identity numbers. Redacting twice changes nothing more.
    Where there is a secret colours go too: they may stand in the middle of one.
    """
    if is_clean(text):
        return text, 0
    original, text = text, _plain(text)
    pieces = (
        _pieces(text) if len(text) > 2 * PIECE and not _BEYOND_THE_GATE.search(text) else [text]
    )
    done = [_by_rules(piece) for piece in pieces]
    total = sum(count for _, count in done)
    text = "".join(piece for piece, _ in done)
    return (text, total) if total else (original, 0)


def redact_name(name: str) -> str:
    """The name of a file without secrets; its endings stay, which tell what it is.

    In a name a word begins behind any sign: ``run_7-hf_…`` holds a token.
    """
    ending = _ENDINGS.search(name)
    stem = name[: ending.start()] if ending else name
    for start in [0, *(match.end() for match in _NAME_SIGN.finditer(stem[:MAX_NAME]))]:
        shown, count = redact(stem[start:])
        if count:
            stem = stem[:start] + shown
            break
    return stem + name[ending.start() :] if ending else stem


def _by_rules(text: str) -> tuple[str, int]:
    """The rules one after the other, where their triggers stand."""
    if is_clean(text):
        return text, 0
    lowered = text.lower()
    beyond = not text.isascii() and _BEYOND_THE_GATE.search(text)
    total = 0
    gates = iter(_gates)
    for group, may_match in zip(_GROUPS, _group_gates, strict=True):
        pairs = list(zip(group, islice(gates, len(group)), strict=True))
        if not beyond and not may_match(text):
            continue
        for rule, gate in pairs:
            if any(trigger in lowered for trigger in rule.triggers) and (beyond or gate(text)):
                text, count = rule.apply(text)
                total += count
    return text, total


def _pieces(text: str) -> list[str]:
    """A long text cut at line ends, so that what needs the rules stands apart from what does not.

    A piece is clean, or reaches further on both sides than any rule but that of private keys,
    whose texts end at no known place: from the first of them on all is one piece.
    """
    end = text.lower().find("private key")
    end = len(text) if end < 0 else max(0, end - PIECE)
    starts = [0]
    while (at := text.find("\n", starts[-1] + PIECE)) >= 0 and at < end:
        starts.append(at + 1)
    bounds = [*starts, len(text)]
    suspects = [not is_clean(text[a:b]) for a, b in pairwise(bounds)]
    near = [any(suspects[max(0, n - 1) : n + 2]) for n in range(len(suspects))]
    cuts = [n for n in range(1, len(near)) if near[n] != near[n - 1]]
    return [text[bounds[a] : bounds[b]] for a, b in pairwise([0, *cuts, len(near)])]
