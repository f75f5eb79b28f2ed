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
from itertools import pairwise

MARK = "<redacted:{}>"
PIECE = 5000  # characters; a match may be 4,096 of a value and what stands before it
_ENCODED = r"(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt])"  # behind an escape a word begins, too
_WORD = rf"(?:(?<![A-Za-z0-9_-])|{_ENCODED})"
_START = rf"(?:(?<![A-Za-z0-9_.-])|{_ENCODED})"
# Escaped where JSON stands within JSON; tripled in TOML and Python; as HTML and addresses write it.
_QUOTE = (
    r"(?:\\{0,7}(?:['\"]{3}|['\"])|&(?:quot|apos|#0?3[49]|#x2[27]);|\\{1,4}(?:u00|x)2[27]|%2[27])"
)
_SET = r"(?:=>?|:=?|[：＝]|%3[ADad]|&#(?:58|61|x3[ADad]);|\\{1,4}(?:u00|x)3[ADad])"
_IS = rf"(?:{_SET}|是|为|is:?[ \t])"
_KEYS_OF_SECRETS = (
    r"passwords?|passwd|passphrase|passcode|bind_?pw|rootpw|secrets?|secret[._-]?key"
    r"|api[ ._-]?key|access[._-]?key(?:[_-]?id)?|client[_-]key[_-]data|dockerconfigjson"
    r"|(?:private|account|wandb|encryption|signing|app|auth|master|storage|subscription)[_-]?key"
    r"|credentials?"
    r"|(?:auth|access|bearer|hf|hub|hugging_?face|github|gh|gitlab|slack|bot|app|wandb|login"
    r"|session|refresh|security|api|secret|vault)[_-]?token"
)
# A state of a secret and code that reads one, in place of the secret.
_PLAIN_VALUE = (
    r"(?:(?:none|null|true|false|required|optional|expired|missing|invalid|revoked|unset|denied"
    r"|rejected|x{3,64}|\*{1,64}|\.{3})(?![\w!#%^*@+-])"
    r"|(?:[A-Za-z_]\w{0,63}\.){1,4}[A-Za-z_]\w{0,63}[(\[]|your[ _-]|<|\$(?![0-9a-z]{1,8}\$))"
)
_VALUE = (
    r"(?!\\|[0-9]{1,5}(?![\w.!#%^*@-]))[^\s\"',;&()<>\[\]{}|]{4,4096}"
    r"(?:&(?:#(?!0?3[49])[0-9]{2,4}|amp|lt|gt);[^\s\"',;&()<>\[\]{}|]{0,256}){0,4}"
)
_QUOTED = r"(?<=\")[^\"\n]{3,4096}(?<!\\)|(?<=')[^'\n]{3,4096}(?<!\\)"
_HEADER = r"[A-Za-z0-9._~+/=-]"
# The first two letters of those keys and of what the rule adds: looked at before all of them are
# tried, they halve the time of the slowest rule.
_FIRST_LETTERS = (
    r"(?-i:(?=[pP][aAwWrR]|[sS][eEiItTuUlL]|[aA][pPcCuU]|_[tT]|[bB][iIeEoO]|[rR][oOeE]|[cC][lLrR]"
    r"|[dD][oO]|[wW][aA]|[eE][nN]|[mM][aA]|[hH][fFuU]|[gG][iIhH]|[lL][oO]|[vV][aA]))"
)
# What no word, count or piece of code after "token:" looks like.
_RANDOM = (
    r"(?-i:(?=[0-9]{0,64}[A-Za-z])(?=[A-Za-z+/]{0,64}[0-9])[A-Za-z0-9+/]{12,4096}+={0,2}"
    r"|(?=[0-9_+/-]{0,64}[A-Za-z])(?=[A-Za-z_+/-]{0,64}[0-9])[\w+/-]{16,4096}+={0,2}"
    r"|[a-z0-9]{6}\.[a-z0-9]{16}|[a-z]{20,256}+|[A-Z]{20,256}+|[A-Za-z]{32,256}+)"
    r"(?![.-]?\w|[(\[])"
)
# What a person's password looks like and a word or a measure does not: letters with digits or
# signs, neither a name in small letters with underscores nor a number with its unit.
_CHOSEN = (
    r"(?=\S{0,64}?[A-Za-z])(?=\S{0,64}?[0-9!#%^*@])(?![a-z0-9]{0,64}_[a-z0-9_]{0,64}(?![^\s,;)])"
    r"|[0-9]{1,9}(?:[./][0-9]{0,9})?[A-Za-z%]{0,3}"
    r"(?![^\s,;)]))[!-%*+\--:=?-Z^-z~]{6,4096}"
)
_ENDINGS = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]{0,7}){1,2}\Z")
_NAME_SIGN = re.compile(r"[^A-Za-z0-9]")
MAX_NAME = 1024  # characters of a path in which words are looked for; a name has 255
_ANSI = re.compile("\x1b\\[[0-9;]{0,32}[mKGHJ]")


@dataclass(frozen=True, slots=True)
class _Rule:
    """One kind of secret; `triggers` are lower-case pieces of which one stands in any hit.

    So does `gate`, an expression of RE2; it is wanted where the triggers stand on many lines.
    """

    kind: str
    triggers: tuple[str, ...]
    expression: re.Pattern[str]
    gate: str

    def replace(self, match: re.Match[str]) -> str:
        """The mark, behind what the expression captures: that stays."""
        return "".join(filter(None, match.groups())) + MARK.format(self.kind)


def _rule(kind: str, triggers: str, expression: str, *, gate: str = "") -> _Rule:
    pieces = tuple(triggers.split("|"))
    return _Rule(kind, pieces, re.compile(expression), gate or "|".join(map(re.escape, pieces)))


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
        r"|AKID[A-Za-z0-9]{16,40}|AKLT[A-Za-z0-9]{20,60})(?![A-Za-z0-9])"
        # Right behind it, as in a table or behind a short option, stands its secret.
        r"(?:[\"']?[ \t]?(?:[,;:|]|[ \t]-[a-z][ =])[ \t]?[\"']?"
        r"(?=[A-Za-z+/]{0,64}[0-9])[A-Za-z0-9/+]{30,64}={0,2}(?![A-Za-z0-9/+]))?",
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
        "k_live_|k_test_|nvapi-|r8_|wandb_v1_|tkb_|tskey-|dop_v1_|hvs.|hvb.|hvr.",
        _WORD + r"(?:[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|nvapi-[A-Za-z0-9_-]{20,}"
        r"|r8_[A-Za-z0-9]{30,}|(?:wandb_v1|tkb)_[A-Za-z0-9_-]{30,}|tskey-[A-Za-z0-9-]{16,}"
        r"|dop_v1_[a-f0-9]{32,}|hv[sbr]\.[A-Za-z0-9_-]{20,})",
    ),
    _rule(
        "token",
        "gsk_|glsa_|glc_|ntn_|lin_api_|shpat_|dckr_pat_|sntrys_|rpa_|xai-|pplx-|pmak-|gocspx-"
        "|age-secret-key-1|/t/tk-|q~|sec",
        _WORD + r"(?:(?:gsk|glsa|glc|ntn|lin_api|shpat|dckr_pat|sntrys|rpa)_[A-Za-z0-9_-]{20,}"
        r"|(?:xai|pplx|PMAK|GOCSPX)-[A-Za-z0-9_-]{20,}|AGE-SECRET-KEY-1[A-Z0-9]{40,})"
        r"|(?<=/t/)tk-[A-Za-z0-9-]{16,}"
        r"|(?<![\w~.-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}|(?<!\w)SEC[0-9a-f]{64}",
        gate="gsk_|glsa_|glc_|ntn_|lin_api_|shpat_|dckr_pat_|sntrys_|rpa_|xai-|pplx-|pmak-|gocspx-"
        "|age-secret-key-1|/t/tk-|[0-9]q~[A-Za-z0-9_~.-]{16}|sec[0-9a-f]{32}",
    ),
    _rule(
        "hash",
        "$",
        r"(?<![\w$])\$(?:apr1|2[abxy]|argon2id?|scrypt|[156y])\$[A-Za-z0-9./+=,$]{20,256}",
        gate=r"\$(?:apr1|2[abxy]|argon2id?|scrypt|[156y])\$",
    ),
    _rule(
        "token",
        "sg.|dapi|:aa|secret_|akcp|key-|.",
        _WORD + r"(?:SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{20,}|dapi[0-9a-f]{32}"
        r"|[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}|secret_[A-Za-z0-9]{40,}"
        r"|AKCp[A-Za-z0-9]{40,}|key-[0-9a-f]{32}|[0-9a-f]{32}\.[A-Za-z0-9]{16}(?![A-Za-z0-9]))",
        gate=r"akcp[0-9a-z]{8}|key-[0-9a-f]{16}|[0-9a-f]{16}\.[0-9a-z]{16}|sg\.[A-Za-z0-9_-]{16}|dapi[0-9a-f]{8}|[0-9]{8}:aa[A-Za-z0-9_-]{8}|secret_",
    ),
    _rule(
        "webhook",
        "hooks.slack.com/|/api/webhooks/|/open-apis/bot/|/webhook/send?|telegram.org/|/webhookb2/",
        r"((?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks"
        r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot(?:/v2)?/hook)/"
        r"|qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=|api\.telegram\.org/bot"
        r"|webhook\.office\.com/webhookb2/)"
        r"[A-Za-z0-9/:@_-]+",
    ),
    _rule(
        "signature",
        "sig=|sign=|signature=",
        r"(?i)((?:[?&](?:[a-z]{1,4}-){0,3}(?:sig|sign|signature)|\bsignature)=)"
        r"[A-Za-z0-9%+/_-]{16,4096}={0,2}",
        gate="(?:[?&-](?:sig|sign)|signature)=",
    ),
    _rule(
        "token",
        "?key=|&key=|?code=|&code=|?auth=|&auth=",
        rf"([?&](?:key|code|auth)=){_RANDOM}",
    ),
    _rule(
        "credentials",
        "%3a%2f%2f",
        r"(?i)(%3A%2F%2F[^\s/&%]{1,64}%3A)(?!<redacted)[^\s&]{1,256}?(?=%40)",
    ),
    _rule(
        "credentials",
        "://",
        # A mark in the name holds no colon before a password.
        r"(://)(?!<redacted:credentials>)(?:<redacted:[a-z-]{1,16}>|(?!<redacted:)[^\s/:@'\"]){0,256}"
        r":[^\s/@'\"]{1,256}(?:@[^\s/@'\"?#,;]{1,128}){0,3}"
        r"(?=@)",
        gate=r"://[^\s/'\"]+@",
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
        rf"(?i)(?<![A-Za-z0-9_.-])(--(?:[A-Za-z0-9_.-]{{0,48}}?(?:{_KEYS_OF_SECRETS})|token|m_key)"
        rf"(?: (?=[^\s-](?:\S{{7}}|\S{{0,6}}[0-9]))|{_QUOTE},\s{{0,4}}(?={_QUOTE}[^-]))"
        rf"(?:{_QUOTE})?)(?!{_PLAIN_VALUE})(?:{_QUOTED}|(?<![\"']){_VALUE})",
        gate=rf"{_KEYS_OF_SECRETS}|--token|--m_key",
    ),
    _rule(
        "secret",
        "pass|pw|secret|key|credential|token|dockerconfig",
        rf"(?i){_FIRST_LETTERS}((?:{_KEYS_OF_SECRETS}"
        # PWD is also where a job ran, and lower-case names in _token are counts and words.
        rf"|pwd(?!\s{{0,4}}{_SET}?\s{{0,4}}(?:{_QUOTE})?[/~])|(?-i:_TOKEN)"
        rf"|_token(?=(?:{_QUOTE})?\]?\s{{0,4}}{_SET}\s{{0,4}}(?:{_QUOTE})?{_RANDOM}))"
        rf"(?:{_QUOTE})?\]?(?:\s{{0,4}}{_SET}\s{{0,4}}"
        # What stands behind "secret" is mostly its name.
        rf"|(?<=[\"']),\s{{0,4}}(?={_QUOTE}[^\s'\"]{{0,64}}[0-9])"
        rf"|(?<=[a-z])(?<!\bsecret) (?=[^\s-](?:[^\s-]{{7}}|(?=\S{{0,64}}[0-9])\S{{7}})))"
        rf"(?:\[(?={_QUOTE}(?!{_PLAIN_VALUE}))|[bru]?{_QUOTE})?)(?!{_PLAIN_VALUE})"
        rf"(?:(?<=\[)[^\]\n]{{4,4096}}|{_QUOTED}|(?<![\"'\[]){_VALUE})",
        gate=rf"{_KEYS_OF_SECRETS}|pwd|_token",
    ),
    _rule(
        "secret",
        "name|key=",
        # Kubernetes, Hadoop, .NET and JSON: the name on one line, the value on this or the next.
        r"(?i)((?:name|\bkey(?==))[ \t>=:'\"]{1,8}[\w.-]{0,48}?"
        rf"(?:{_KEYS_OF_SECRETS}|(?-i:_TOKEN))[\w.-]{{0,16}}"
        rf"(?:{_QUOTE}|</name>)?[^\n]{{0,4}}(?:\n[^\n]{{0,80}}?)?\bvalue"
        rf"(?:{_QUOTE})?(?:[ \t]{{0,4}}{_SET}|>)[ \t]{{0,4}}(?:{_QUOTE})?)"
        rf"(?!{_PLAIN_VALUE})(?:{_QUOTED}|(?<![\"']){_VALUE})",
        gate=rf"{_KEYS_OF_SECRETS}|_token",
    ),
    _rule(
        "secret",
        "pass|pw|secret|key|credential|token|dockerconfig",
        rf"(?i)((?:<|&lt;)[\w.:-]{{0,48}}?(?:{_KEYS_OF_SECRETS})[\w.-]{{0,16}}(?:>|&gt;))"
        rf"(?!{_PLAIN_VALUE}|redacted)[^<>&\s]{{4,4096}}(?=<|&lt;)",
        gate=_KEYS_OF_SECRETS,
    ),
    _rule(
        "secret",
        "pass",
        rf"(?<![A-Za-z])((?:(?i:pass|(?:user|root|admin|db|smtp|redis|pg|my|ssh)_?pass)"
        rf"|[A-Z0-9_]{{0,48}}_PASS)(?:{_QUOTE})?"
        rf"[ \t]{{0,4}}{_SET}[ \t]{{0,4}}(?:{_QUOTE})?)(?!{_PLAIN_VALUE}){_CHOSEN}",
        gate=rf"pass(?:{_QUOTE})?[ \t]{{0,4}}{_SET}",
    ),
    _rule(
        "secret",
        "pass|pw",
        rf"((?<![A-Za-z])(?i:pass(?:words?|wd|phrase|code)?|pwd?)"
        rf"(?: (?i:is|was):?| (?i:for|of) [^\n:：]{{1,40}}[:：]) {{1,4}}['\"]?)"
        rf"(?!{_PLAIN_VALUE}){_CHOSEN}",
        gate="(?:pass[a-z]{0,7}|pwd?) (?:is|was|for|of) ",
    ),
    _rule(
        "secret",
        "app.token|provider.token|identified ",
        rf"((?:App|Provider)\.token(?:{_QUOTE})?\s{{0,4}}{_SET}\s{{0,4}}(?:{_QUOTE})?"
        rf"|(?i:\bidentified (?:with \S{{1,64}} )?by ['\"]))(?!{_PLAIN_VALUE}|<redacted)"
        r"[^\s\"']{4,4096}",
    ),
    _rule(
        "secret",
        "ak",
        rf"(?i)(?<![A-Za-z0-9])(ak[ /、,&和]{{1,4}}sk[ \t]{{0,4}}{_IS}?[ \t]{{0,4}})"
        r"(?=[A-Z+/]{0,64}[0-9])[A-Z0-9+=_-]{8,64}[ \t]{0,3}[ /,，、:][ \t]{0,3}"
        r"[A-Z0-9+/=_-]{16,4096}",
        gate="ak[ /、,&和]{1,4}sk",
    ),
    _rule(
        "secret",
        "ak|sk",
        rf"(?i)(?<![A-Za-z0-9])([as]k(?:{_QUOTE})?\]?[ \t]{{0,4}}{_SET}"
        rf"[ \t]{{0,4}}(?:{_QUOTE})?){_RANDOM}",
        gate=rf"[as]k(?:{_QUOTE})?\]?[ \t]{{0,4}}{_SET}[ \t]{{0,4}}"
        rf"(?:{_QUOTE})?[A-Za-z0-9+/_-]{{12}}",
    ),
    _rule(
        "secret",
        "auth",
        rf"((?<![A-Za-z])_?auth(?:{_QUOTE})?[ \t]{{0,4}}{_SET}[ \t]{{0,4}}(?:{_QUOTE})?)"
        r"(?=[a-z+/]{0,64}[A-Z0-9=])[A-Za-z0-9+/]{12,4096}={0,2}(?![\w.:/-])",
        gate=rf"auth(?:{_QUOTE})?[ \t]{{0,4}}{_SET}[ \t]{{0,4}}(?:{_QUOTE})?[A-Za-z0-9+/]{{12}}",
    ),
    _rule(
        "token",
        "token|令牌|key",
        _START + r"((?i:(?:--|x-(?:[a-z]{1,20}-){0,3})?token|令牌|(?:api|access|secret)[ _-]?key)"
        rf"(?:{_QUOTE})?\]?[ \t]{{0,4}}{_IS}[ \t]{{0,4}}(?:{_QUOTE})?){_RANDOM}",
        gate=rf"(?:token|令牌|key)(?:{_QUOTE})?\]?[ \t]{{0,4}}{_IS}",
    ),
    _rule(
        "secret",
        "密码|口令|密钥|秘钥",
        r"((?:密码|口令|[密秘]钥)\s{0,4}(?:[是为]?[:：=]|[是为])\s{0,4})(?!<redacted)[!-;=-~]{4,4096}",
    ),
    _rule(
        "secret",
        "密码|口令|pw|login|creds|账号|用户名|user|登",
        rf"((?:密码|口令|(?<![A-Za-z])(?i:pw))[ \t:=]{{1,3}}|(?:密码|口令)[\u4e00-\u9fff]{{1,6}}"
        rf"|用 ?[a-zA-Z][\w.@-]{{0,64}} ?/ ?(?=\S{{6,64}} ?登[录陆])"
        rf"|(?i:login|creds|账号|用户名|user(?:name)?)[:：=] ?[\w.@-]{{1,64}} ?/ ?)"
        rf"(?!{_PLAIN_VALUE}){_CHOSEN}",
        gate=r"密码|口令|pw[ \t:=]{1,3}[!-~]{6}"
        r"|(?:login|creds|账号|用户名|user(?:name)?)[:：=] ?[\w.@-]{1,64} ?/|登[录陆]",
    ),
    _rule(
        "secret",
        "_key",
        rf"((?<![A-Za-z0-9_])[A-Z][A-Z0-9_]{{1,48}}_KEY(?:{_QUOTE})?\]?[ \t]{{0,4}}{_SET}"
        rf"[ \t]{{0,4}}(?:{_QUOTE})?)(?=[\w+/=-]{{20}}){_RANDOM}",
        gate=rf"_key(?:{_QUOTE})?\]?[ \t]{{0,4}}{_SET}",
    ),
    _rule(
        "secret",
        "curl |sshpass |docker login |mysql|redis-cli |ipmitool |swanlab login |openssl |ldap"
        "|smbclient |sudo -s|unzip |7z |chpasswd|az login |snmp|mc alias set |mc config host add "
        "|-stdin|--with-token",
        r"(curl [^\n|]{0,200}?(?<= )(?:-u|--user)[ =]?['\"]?[^\s:'\"]{1,64}:"
        r"|(?:sshpass|docker login) [^\n|]{0,200}?(?<= )-p ?['\"]?"
        r"|mysql(?:dump|admin)? [^\n|]{0,200}?(?<= )-p['\"]?"
        r"|redis-cli [^\n|]{0,200}?(?<= )-a ['\"]?"
        r"|ipmitool [^\n|]{0,200}?(?<= )-P ['\"]?|swanlab login [^\n|]{0,200}?(?<= )-k ['\"]?"
        r"|openssl [^\n|]{0,200}?pass(?:in|out)? pass:|ldap[a-z]{3,8} [^\n|]{0,200}?(?<= )-w ['\"]?"
        r"|unzip [^\n|]{0,200}?(?<= )-P ?['\"]?|\b7z [^\n|]{0,200}?(?<= )-p['\"]?"
        r"|smbclient [^\n|]{0,200}?-U ['\"]?[^\s%'\"]{1,64}%"
        r"|\baz login [^\n|]{0,200}?(?<= )(?:-p|--password)[ =]['\"]?"
        r"|\bsnmp[a-z]{2,12} [^\n|]{0,200}?(?<= )-c ?['\"]?(?!public\b)"
        r"|\bmc (?:alias set|config host add) (?:[^\s<]\S{0,200} ){3}['\"]?)"
        r"(?!<redacted)[^\s'\"-][^\s'\"]{3,256}"
        r"|(\becho ['\"]?(?!(?:\w{1,32}:)?<redacted)(?:\w{1,32}:)?)[^\s'\"|$<-][^\s'\"|]{3,256}"
        r"(?=['\"]? ?\| ?(?:sudo -S|chpasswd|[^\n|]{1,160}?(?:-stdin|--with-token)))",
    ),
    _rule(
        "secret",
        "util config |util64 config |coscmd config ",
        r"((?:(?:obs|oss|tos)util(?:64)?|coscmd) config )(?=[^\n|]{0,300}?-[aiks][= ])"
        r"[^\n|<][^\n|]{0,600}",
    ),
    _rule(
        "phone",
        "电话|手机|微信|联系|phone|wechat|call me|+86",
        r"(?i)((?:电话|手机|微信|联系|phone|wechat|call me|\+86)[^\n0-9]{0,16})"
        r"(?<![0-9])1[3-9][0-9][ -]?[0-9]{4}[ -]?[0-9]{4}(?![0-9])",
    ),
    _rule(
        "identity-number",
        "身份证|id card",
        r"(?i)((?:身份证|id card)[^\n0-9]{0,16})[0-9]{17}[0-9X](?![0-9])",
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

    options = re2.Options()
    options.case_sensitive = False
    options.never_capture = True
    # A set of one: it only says yes or no, in half the time. Its automaton is one of some hundred
    # short words, far below the memory at which re2 gives up on a set.
    gate = re2.Set.SearchSet(options)
    gate.Add("|".join(sorted({rule.gate for rule in _RULES})))
    gate.Compile()
    match: Callable[[str], object] = gate.Match
    return match


_suspicious = _gate()
# The letters beyond ASCII that count as Latin ones where case is ignored, for `re` and not for the
# gate, and what has no UTF-8. https://docs.python.org/3/library/re.html#re.IGNORECASE
_BEYOND_THE_GATE = re.compile("[\u0130\u0131\u017f\u212a\ud800-\udfff]")


def is_clean(text: str) -> bool:
    """Whether nothing in `text` can be a secret; then no part of it holds one either."""
    if not text.isascii() and _BEYOND_THE_GATE.search(text):
        return False
    return not _suspicious(text) and ("\x1b" not in text or not _suspicious(_ANSI.sub("", text)))


def redact(text: str) -> tuple[str, int]:
    """Replace secrets by ``<redacted:kind>``; returns the text and how many were replaced.

    Found are private keys, cloud, code-hosting, chat and model-hub tokens, JSON web tokens,
    authorisation headers, URLs with credentials, values of password-like keys, passwords of
    commands, e-mail addresses, phone and identity numbers. Redacting twice changes nothing more.
    Where there is a secret colours go too: they may stand in the middle of one.
    """
    if is_clean(text):
        return text, 0
    original, text = text, _ANSI.sub("", text) if "\x1b" in text else text
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
    total = 0
    for rule in _RULES:
        if any(trigger in lowered for trigger in rule.triggers):
            text, count = rule.expression.subn(rule.replace, text)
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
