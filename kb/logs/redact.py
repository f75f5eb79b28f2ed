"""Removing secrets from text before anything is stored, shown or returned.

Every expression starts at a word boundary or a literal and is bounded, so time is linear in the
text's length. What a diagnosis needs stays: element counts, process-group ids, hosts, addresses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

MARK = "<redacted:{}>"
_WORD = r"(?<![A-Za-z0-9_-])"
_KEYS_OF_SECRETS = (
    r"passwords?|passwd|passphrase|pwd|secrets?|secret[_-]?key|api[_-]?key|apikey|access[_-]?key"
    r"(?:[_-]?id)?|private[_-]?key|credentials?|(?:auth|access|bearer|hf|hub|hugging_?face|github|gh"
    r"|gitlab|slack|bot|app|wandb|login|session|refresh|security|api|secret|bearer)[_-]?token"
)
_PLAIN_VALUE = r"(?:none|null|true|false|required|optional|\*+|\.{3}|<|\$|xxx|your)"


@dataclass(frozen=True, slots=True)
class _Rule:
    """One kind of secret; `triggers` are lower-case pieces of which one stands in any hit."""

    kind: str
    triggers: tuple[str, ...]
    expression: re.Pattern[str]
    replace: Callable[[re.Match[str]], str] | None = None


def _keep_front(kind: str) -> Callable[[re.Match[str]], str]:
    return lambda match: match[1] + MARK.format(kind)


_RULES = (
    _Rule(
        "private-key",
        ("private key-----",),
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?"
            r"(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
            re.DOTALL,
        ),
    ),
    _Rule(
        "token",
        ("akia", "asia", "aroa", "aida"),
        re.compile(_WORD + r"(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ),
    _Rule(
        "token",
        ("hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "npm_", "pypi-"),
        re.compile(
            _WORD
            + r"(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
            r"|glpat-[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,})"
        ),
    ),
    _Rule(
        "token",
        ("xox", "xapp-", "sk-", "aiza", "eyj", "ya29."),
        re.compile(
            _WORD + r"(?:xox[abeoprs]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{16,}|sk-[A-Za-z0-9_-]{20,}"
            r"|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}"
            r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)"
        ),
    ),
    _Rule(
        "webhook",
        ("hooks.slack.com/",),
        re.compile(r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[A-Za-z0-9/_-]+"),
        _keep_front("webhook"),
    ),
    _Rule(
        "credentials",
        ("://",),
        re.compile(r"(://)(?!<redacted)[^\s/:@'\"]{0,256}:[^\s/@'\"]{1,256}(?=@)"),
        _keep_front("credentials"),
    ),
    _Rule(
        "token",
        ("bearer ", "basic ", "x-api-key", "wandb login", "docker login"),
        re.compile(
            r"((?:Authorization['\"]?\s{0,4}[:=]\s{0,4}['\"]?)?(?:Bearer|Basic) |"
            r"x-api-key['\"]?\s{0,4}[:=]\s{0,4}['\"]?|wandb login (?:--relogin )?)"
            r"(?!<redacted)[A-Za-z0-9._~+/=-]{16,}",
            re.IGNORECASE,
        ),
        _keep_front("token"),
    ),
    _Rule(
        "secret",
        ("pass", "pwd", "secret", "key", "credential", "token"),
        re.compile(
            r"(?<![A-Za-z0-9_.-])((?:--)?[A-Za-z0-9_.-]{0,48}?(?:" + _KEYS_OF_SECRETS + r"|_TOKEN)"
            r"['\"]?\]?(?:\s{0,4}(?:=|:=?|=>)\s{0,4}|(?<=[a-z]) (?=[^\s-]{8}))['\"]?)"
            r"(?!" + _PLAIN_VALUE + r")"
            r"(?:(?<=\")[^\"\n]{3,256}(?=\")|(?<=')[^'\n]{3,256}(?=')"
            r"|(?<![\"'])(?!\d{1,5}(?![\w.-]))[^\s\"',;&()<>\[\]{}|]{4,256})",
            re.IGNORECASE,
        ),
        _keep_front("secret"),
    ),
    _Rule(
        "secret",
        ("密码", "口令", "密钥"),
        re.compile(
            r"((?:密码|口令|密钥)\s{0,4}(?:是|为|[:：=])\s{0,4})(?!<redacted)[!-;=-~]{4,256}"
        ),
        _keep_front("secret"),
    ),
    _Rule(
        "email",
        ("@",),
        re.compile(
            r"(?<![A-Za-z0-9._%+-])(?!git@)[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}"
            r"[A-Za-z]{2,24}(?![A-Za-z0-9-])"
        ),
    ),
)


def _gate() -> Callable[[str], object]:
    """Tells whether any rule can match, in one pass: nearly all lines of a log hold no secret.

    It is looser than the rules, so it changes nothing but the time they take.
    """
    import re2

    # Keys are spelt out, since "key" or "token" alone stand on every other line.
    broad = {"pass", "pwd", "secret", "key", "credential", "token"}
    literals = sorted({t for rule in _RULES for t in rule.triggers} - broad)
    options = re2.Options()
    options.case_sensitive = False
    options.never_capture = True
    # A set of one: it only says yes or no, in half the time. Its automaton is one of some hundred
    # short words, far below the memory at which re2 gives up on a set.
    gate = re2.Set.SearchSet(options)
    gate.Add("|".join([*map(re.escape, literals), _KEYS_OF_SECRETS, "_token"]))
    gate.Compile()
    found: Callable[[str], object] = gate.Match
    return found


_suspicious = _gate()
# The letters beyond ASCII that count as Latin ones where case is ignored, for `re` and not for the
# gate, and what has no UTF-8. https://docs.python.org/3/library/re.html#re.IGNORECASE
_BEYOND_THE_GATE = re.compile("[\u0130\u0131\u017f\u212a\ud800-\udfff]")


def redact(text: str) -> tuple[str, int]:
    """Replace secrets by ``<redacted:kind>``; returns the text and how many were replaced.

    Found are private keys, cloud, code-hosting, chat and model-hub tokens, JSON web tokens,
    authorisation headers, URLs with credentials, values of password-like keys, e-mail addresses.
    Redacting twice changes nothing more.
    """
    if (text.isascii() or not _BEYOND_THE_GATE.search(text)) and not _suspicious(text):
        return text, 0
    lowered = text.lower()
    total = 0
    for rule in _RULES:
        if any(trigger in lowered for trigger in rule.triggers):
            text, count = rule.expression.subn(rule.replace or MARK.format(rule.kind), text)
            total += count
    return text, total
