"""What a rule of redaction is, and the parts of which the rules are made.

Every expression starts at a word boundary or a literal and is bounded, so time is linear in the
text's length. What a diagnosis needs stays: element counts, process-group ids, hosts, addresses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

MARK = "<redacted:{}>"
ENCODED = r"(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt])"  # behind an escape a word begins, too
WORD = rf"(?:(?<![A-Za-z0-9_-])|{ENCODED})"
START = rf"(?:(?<![A-Za-z0-9_.-])|{ENCODED})"
# Escaped where JSON stands within JSON; tripled in TOML and Python; as HTML and addresses write it.
QUOTE = (
    r"(?:\\{0,7}(?:['\"]{3}|['\"])|&(?:quot|apos|#0?3[49]|#x2[27]);"
    r"|\\{1,4}(?:u00|x)2[27]|%(?:25)?2[27])"
)
SET = (
    r"(?:=>?|:=?|[：＝]|%(?:25)?3[ADad]"
    r"|&(?:#(?:58|61|x3[ADad])|equals|colon);|\\{1,4}(?:u00|x)3[ADad])"
)
IS = rf"(?:{SET}|是|为|is:?[ \t])"
KEYS_OF_SECRETS = (
    r"passwords?|passwd|passphrase|passcode|bind_?pw|rootpw|authtok|secrets?|secret[._-]?key"
    r"|api[ ._-]?key|access[._-]?key(?:[_-]?id)?|client[_-]key[_-]data|dockerconfigjson"
    r"|pre_?shared[_-]?key"
    r"|(?:private|account|wandb|fernet|encryption|signing|app|auth|master|storage|subscription)[_-]?key"
    r"|credentials?"
    r"|(?:auth|access|bearer|hf|hub|hugging_?face|github|gh|gitlab|slack|bot|app|wandb|login"
    r"|session|refresh|security|api|secret|vault)[._-]?token"
)
# A state of a secret and code that reads one, in place of the secret.
PLAIN_VALUE = (
    r"(?:(?:none|null|true|false|required|optional|expired|missing|invalid|revoked|unset|denied"
    r"|rejected|x{3,64}|\*{1,64}|\.{3})(?![\w!#%^*@+-])"
    r"|(?:[A-Za-z_]\w{0,63}\.){1,4}[A-Za-z_]\w{0,63}[(\[]|your[ _-]|<|\$(?![0-9a-z]{1,8}\$)"
    # A place in a template, a call that fetches one, one that somebody has masked.
    r"|\{\{|#\{|\{[A-Za-z_][\w.]{0,63}\}|%\([a-z_]{1,48}\)s|%[A-Z_]{3,48}%"
    r"|[a-z]{2,32}(?:_[a-z0-9]{1,32}){1,4}\(|(?:get|load|read|fetch|decrypt|input)[A-Za-z]{0,48}\("
    r"|[A-Za-z]{0,8}[_-]?(?:\*{3,64}|x{6,64}|\.{3}|\u2026)[A-Za-z0-9]{0,4}(?![\w!#%^*@+-]))"
)
VALUE = (
    r"(?!\\|[0-9]{1,5}(?![\w.!#%^*@-]))[^\s\"',;&()<>\[\]{}|]{4,4096}"
    r"(?:&(?:#(?!0?3[49])[0-9]{2,4}|amp|lt|gt);[^\s\"',;&()<>\[\]{}|]{0,256}){0,4}"
)
QUOTED = r"(?<=\")[^\"\n]{3,4096}(?<!\\)|(?<=')[^'\n]{3,4096}(?<!\\)"
HEADER = r"[A-Za-z0-9._~+/=-]"
# The first two letters of those keys and of what the rule adds: looked at before all of them are
# tried, they halve the time of the slowest rule.
FIRST_LETTERS = (
    r"(?-i:(?=[pP][aAwWrR]|[sS][eEiItTuUlL]|[aA][pPcCuU]|_[tT]|[bB][iIeEoO]|[rR][oOeE]|[cC][lLrR]"
    r"|[dD][oO]|[wW][aA]|[eE][nN]|[mM][aA]|[hH][fFuU]|[fF][eE]|[gG][iIhH]|[lL][oO]|[vV][aA]|[tT][oO]))"
)
# What no word, count or piece of code after "token:" looks like.
RANDOM = (
    r"(?-i:(?=[0-9]{0,64}[A-Za-z])(?=[A-Za-z+/]{0,64}[0-9])[A-Za-z0-9+/]{12,4096}+={0,2}"
    r"|(?=[0-9_+/-]{0,64}[A-Za-z])(?=[A-Za-z_+/-]{0,64}[0-9])[\w+/-]{16,4096}+={0,2}"
    r"|(?=[A-Z+/]{0,64}[a-z])(?=[a-z+/]{0,64}[A-Z])[A-Za-z+/]{16,4096}={1,2}"  # ends as base64 does
    r"|[a-z0-9]{6}\.[a-z0-9]{16}|[a-z]{20,256}+|[A-Z]{20,256}+|[A-Za-z]{32,256}+)"
    r"(?![.-]?\w|[(\[])"
)
# What a person's password looks like and a word or a measure does not: letters with digits or
# signs, neither a name in small letters with underscores nor a number with its unit.
CHOSEN = (
    r"(?=\S{0,64}?[A-Za-z])(?=\S{0,64}?[0-9!#%^*@])(?![a-z0-9]{0,64}_[a-z0-9_]{0,64}(?![^\s,;)])"
    r"|[0-9]{1,9}(?:[./][0-9]{0,9})?[A-Za-z%]{0,3}"
    r"(?![^\s,;)]))[!-%*+\--:=?-Z^-z~]{6,4096}"
)

# Letters of both cases and figures, or a hash: what a sentence says behind "the secret".
MIXED = (
    r"(?-i:(?=[a-z0-9+/]{0,64}[A-Z])(?=[A-Z0-9+/]{0,64}[a-z])(?=[A-Za-z+/]{0,64}[0-9])"
    r"[A-Za-z0-9+/]{16,4096}={0,2}|[0-9a-f]{32,64})(?![\w.=/+-]{0,1}\w)"
)
# On the line below its name a password stands alone; a prompt is followed by anything, and the
# head of a function by code.
BELOW = (
    rf"(?:[^\S\n]{{0,4}}|[^\S\n]{{0,4}}(?:[|>][+-]?[ \t]{{0,4}})?\n[ \t]{{0,16}}"
    rf"(?=['\"]?{CHOSEN}['\",]{{0,2}}[ \t]{{0,4}}(?:\n|\Z)))"
)


def _any(_secret: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One kind of secret; `triggers` are lower-case pieces of which one stands in any hit.

    So does `gate`, an expression of RE2; it is wanted where the triggers stand on many lines.
    `closer`, where there is one, is asked of a text in which the gate stands, and may be dearer.
    `accepts` says of what would be replaced whether it is a secret: where a sum must be right.
    """

    kind: str
    triggers: tuple[str, ...]
    expression: re.Pattern[str]
    gate: str
    closer: str
    accepts: Callable[[str], bool] = _any

    def apply(self, text: str) -> tuple[str, int]:
        """The text with marks, behind what the expression captures: that stays; and how many."""
        refused = 0

        def mark(match: re.Match[str]) -> str:
            nonlocal refused
            kept = "".join(filter(None, match.groups()))
            if self.accepts(match[0][len(kept) :]):
                return kept + MARK.format(self.kind)
            refused += 1
            return match[0]

        text, count = self.expression.subn(mark, text)
        return text, count - refused


def secret_rule(
    kind: str,
    triggers: str,
    expression: str,
    *,
    gate: str = "",
    closer: str = "",
    accepts: Callable[[str], bool] = _any,
) -> SecretRule:
    """A rule of its kind; `triggers` are parted by ``|`` and are the gate where none is given."""
    pieces = tuple(triggers.split("|"))
    gate = gate or "|".join(map(re.escape, pieces))
    return SecretRule(kind, pieces, re.compile(expression), gate, closer or gate, accepts)
