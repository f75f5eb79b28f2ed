"""Removing secrets from text before anything is stored, shown or returned.

A pasted log passes here in `kb.logs.scan.events` (lines and captures) and `kb.logs.reader` (a
person's words); evidence files in `kb.evidence.collect`.

Every expression starts at a word boundary or a literal and is bounded, so time is linear in the
text's length. What a diagnosis needs stays: element counts, process-group ids, hosts, addresses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

MARK = "<redacted:{}>"
_WORD = r"(?<![A-Za-z0-9_-])"
_QUOTE = r"\\{0,7}['\"]"  # escaped where JSON stands within JSON
_SET = r"(?:=>?|:=?|[：＝]|%3[AD])"
_KEYS_OF_SECRETS = (
    r"passwords?|passwd|passphrase|secrets?|secret[_-]?key|api[_-]?key|apikey|access[_-]?key"
    r"(?:[_-]?id)?|(?:private|account|wandb|encryption|signing)[_-]?key|credentials?"
    r"|(?:auth|access|bearer|hf|hub|hugging_?face|github|gh|gitlab|slack|bot|app|wandb|login"
    r"|session|refresh|security|api|secret|vault)[_-]?token"
)
_PLAIN_VALUE = r"(?:none|null|true|false|required|optional|\*+|\.{3}|<|\$|xxx|your)"
_VALUE = r"(?!\\|[0-9]{1,5}(?![\w.-]))[^\s\"',;&()<>\[\]{}|]{4,4096}"
_QUOTED = r"(?<=\")[^\"\n]{3,4096}(?<!\\)|(?<=')[^'\n]{3,4096}(?<!\\)"
_HEADER = r"[A-Za-z0-9._~+/=-]"
# What no word, count or piece of code after "token:" looks like.
_RANDOM = (
    r"(?-i:(?=[0-9]{0,64}[A-Za-z])(?=[A-Za-z+/]{0,64}[0-9])[A-Za-z0-9+/]{12,4096}+={0,2}"
    r"|(?=[0-9_+/-]{0,64}[A-Za-z])(?=[A-Za-z_+/-]{0,64}[0-9])[\w+/-]{16,4096}+={0,2}"
    r"|[a-z0-9]{6}\.[a-z0-9]{16}|[a-z]{20,256}+|[A-Z]{20,256}+|[A-Za-z]{32,256}+)"
    r"(?!\.?\w|[(\[])"
)


@dataclass(frozen=True, slots=True)
class _Rule:
    """One kind of secret; `triggers` are lower-case pieces of which one stands in any hit."""

    kind: str
    triggers: tuple[str, ...]
    expression: re.Pattern[str]

    def replace(self, match: re.Match[str]) -> str:
        """The mark, behind what the expression captures: that stays."""
        return "".join(filter(None, match.groups())) + MARK.format(self.kind)


def _rule(kind: str, triggers: str, expression: str) -> _Rule:
    return _Rule(kind, tuple(triggers.split("|")), re.compile(expression))


_RULES = (
    _rule(
        "private-key",
        "private key",
        r"(?s)-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
        r"(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    _rule(
        "token",
        "akia|asia|aroa|aida|ltai|akid|aklt",
        _WORD + r"(?:(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}|LTAI[A-Za-z0-9]{12,26}"
        r"|AKID[A-Za-z0-9]{16,40}|AKLT[A-Za-z0-9]{20,60})(?![A-Za-z0-9])",
    ),
    _rule(
        "token",
        "hf_|ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-|gldt-|npm_|pypi-",
        _WORD + r"(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
        r"|gl(?:pat|dt)-[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,})",
    ),
    _rule(
        "token",
        "xox|xapp-|sk-|aiza|eyj|ya29.",
        _WORD + r"(?:xox[abeoprs]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{16,}|sk-[A-Za-z0-9_-]{20,}"
        r"|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}"
        r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)",
    ),
    _rule(
        "token",
        "k_live_|k_test_|nvapi-|r8_|wandb_v1_|tkb_|tskey-|dop_v1_|hvs.",
        _WORD + r"(?:[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|nvapi-[A-Za-z0-9_-]{20,}"
        r"|r8_[A-Za-z0-9]{30,}|(?:wandb_v1|tkb)_[A-Za-z0-9_-]{30,}|tskey-[A-Za-z0-9-]{16,}"
        r"|dop_v1_[a-f0-9]{32,}|hvs\.[A-Za-z0-9_-]{20,})",
    ),
    _rule(
        "webhook",
        "hooks.slack.com/|/api/webhooks/|/open-apis/bot/|/webhook/send?|telegram.org/",
        r"((?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks"
        r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot(?:/v2)?/hook)/"
        r"|qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=|api\.telegram\.org/bot)"
        r"[A-Za-z0-9/:_-]+",
    ),
    _rule(
        "signature",
        "?sig=|&sig=|signature=",
        r"(?i)([?&](?:sig|(?:x-(?:amz|goog|oss)-)?signature)=)[A-Za-z0-9%+/_-]{16,4096}={0,2}",
    ),
    _rule(
        "credentials",
        "://",
        r"(://)(?!<redacted)[^\s/:@'\"]{0,256}:[^\s/@'\"]{1,256}(?:@[^\s/@'\"?#,;]{1,128}){0,3}"
        r"(?=@)",
    ),
    _rule(
        "cookie",
        "cookie",
        rf"(?i)(\bcookie(?:{_QUOTE})?\s{{0,4}}[:：]\s{{0,4}}(?:{_QUOTE})?)"
        r"(?=[\w.-]{1,64}=[^\s=])[^\n'\"]{4,4096}",
    ),
    _rule(
        "token",
        "authorization|bearer |basic ",
        rf"((?i:authorization)(?:{_QUOTE})?\s{{0,4}}{_SET}\s{{0,4}}(?:{_QUOTE})?"
        rf"(?:(?i:bearer|basic|token|apikey|negotiate) {{1,4}}(?!(?i:{_PLAIN_VALUE}|tokens?\b))"
        rf"|(?={_RANDOM}))"
        rf"|(?i:bearer) (?={_HEADER}{{16}}|(?={_HEADER}{{8}}){_HEADER}{{0,15}}[0-9])"
        rf"|(?i:basic) (?=.[A-Za-z0-9+/]{{0,64}}?[A-Z0-9=])(?={_HEADER}{{16}}))"
        rf"{_HEADER}{{6,}}",
    ),
    _rule(
        "token",
        "wandb login|wandb.login|api key|api_key|api-key",
        r"(wandb login (?:--\S{1,200} ){0,4})(?!<redacted|-)[A-Za-z0-9._~+/=-]{16,}"
        r"|((?i:wandb[. ]login|api[ _-]key)[^\n]{0,160}?(?<![0-9A-Za-z]))"
        r"[0-9a-f]{40}(?![0-9a-f])",
    ),
    _rule(
        "secret",
        "--",
        rf"(?i)(?<![A-Za-z0-9_.-])(--(?:[A-Za-z0-9_.-]{{0,48}}?(?:{_KEYS_OF_SECRETS})|token)"
        rf"(?: (?=[^\s-](?:\S{{7}}|\S{{0,6}}[0-9]))|{_QUOTE},\s{{0,4}}(?={_QUOTE}[^-]))"
        rf"(?:{_QUOTE})?)(?!{_PLAIN_VALUE})(?:{_QUOTED}|(?<![\"']){_VALUE})",
    ),
    _rule(
        "secret",
        "pass|pwd|secret|key|credential|token",
        rf"(?i)(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]{{0,48}}?(?:{_KEYS_OF_SECRETS}"
        # PWD is also where a job ran, and lower-case names in _token are counts and words.
        rf"|pwd(?!\s{{0,4}}{_SET}?\s{{0,4}}(?:{_QUOTE})?[/~])|(?-i:_TOKEN)"
        rf"|_token(?=(?:{_QUOTE})?\]?\s{{0,4}}{_SET}\s{{0,4}}(?:{_QUOTE})?{_RANDOM}))"
        rf"(?:{_QUOTE})?\]?(?:\s{{0,4}}{_SET}\s{{0,4}}"
        rf"|(?<=[a-z]) (?=[^\s-](?:[^\s-]{{7}}|(?=\S{{0,64}}[0-9])\S{{7}})))"
        rf"(?:\[(?={_QUOTE}(?!{_PLAIN_VALUE}))|{_QUOTE})?)(?!{_PLAIN_VALUE})"
        rf"(?:(?<=\[)[^\]\n]{{4,4096}}|{_QUOTED}|(?<![\"'\[]){_VALUE})",
    ),
    _rule(
        "token",
        "token|令牌",
        r"(?<![A-Za-z0-9_.-])((?i:(?:--|x-(?:[a-z]{1,20}-){0,3})?token|令牌)"
        rf"(?:{_QUOTE})?\]?[ \t]{{0,4}}(?:{_SET}|是|为)[ \t]{{0,4}}(?:{_QUOTE})?){_RANDOM}",
    ),
    _rule(
        "secret",
        "密码|口令|密钥|秘钥",
        r"((?:密码|口令|[密秘]钥)\s{0,4}(?:是|为|[:：=])\s{0,4})(?!<redacted)[!-;=-~]{4,4096}",
    ),
    _rule(
        "secret",
        "curl |sshpass |docker login ",
        r"(curl [^\n|]{0,200}?(?<= )(?:-u|--user)[ =]?['\"]?[^\s:'\"]{1,64}:"
        r"|(?:sshpass|docker login) [^\n|]{0,200}?(?<= )-p ?['\"]?)"
        r"(?!<redacted)[^\s'\"-][^\s'\"]{3,256}",
    ),
    _rule(
        "email",
        "@",
        r"(?<![A-Za-z0-9._%+-])(?!git@)[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}"
        r"[A-Za-z]{2,24}(?![A-Za-z0-9-])",
    ),
)


def _gate() -> Callable[[str], object]:
    """Tells whether any rule can match, in one pass: nearly all lines of a log hold no secret.

    It is looser than the rules, so it changes nothing but the time they take.
    """
    import re2

    # What stands on every other line is spelt out.
    broad = {"pass", "secret", "key", "credential", "token", "--", "://"}
    literals = sorted({t for rule in _RULES for t in rule.triggers} - broad)
    options = re2.Options()
    options.case_sensitive = False
    options.never_capture = True
    # A set of one: it only says yes or no, in half the time. Its automaton is one of some hundred
    # short words, far below the memory at which re2 gives up on a set.
    gate = re2.Set.SearchSet(options)
    token = rf"(?:_|--)token|token(?:{_QUOTE})?\]?[ \t]{{0,4}}(?:{_SET}|是|为)"
    address = r"://[^\s/'\"]+@"
    gate.Add("|".join([*map(re.escape, literals), _KEYS_OF_SECRETS, "pwd", token, address]))
    gate.Compile()
    match: Callable[[str], object] = gate.Match
    return match


_suspicious = _gate()
# The letters beyond ASCII that count as Latin ones where case is ignored, for `re` and not for the
# gate, and what has no UTF-8. https://docs.python.org/3/library/re.html#re.IGNORECASE
_BEYOND_THE_GATE = re.compile("[\u0130\u0131\u017f\u212a\ud800-\udfff]")


def is_clean(text: str) -> bool:
    """Whether nothing in `text` can be a secret; then no part of it holds one either."""
    return (text.isascii() or not _BEYOND_THE_GATE.search(text)) and not _suspicious(text)


def redact(text: str) -> tuple[str, int]:
    """Replace secrets by ``<redacted:kind>``; returns the text and how many were replaced.

    Found are private keys, cloud, code-hosting, chat and model-hub tokens, JSON web tokens,
    authorisation headers, URLs with credentials, values of password-like keys, e-mail addresses.
    Redacting twice changes nothing more.
    """
    if is_clean(text):
        return text, 0
    lowered = text.lower()
    total = 0
    for rule in _RULES:
        if any(trigger in lowered for trigger in rule.triggers):
            text, count = rule.expression.subn(rule.replace, text)
            total += count
    return text, total
