"""Secrets given to calls and declarations: their names say that one comes, their place which it is.

What a call is given is a secret only as a string that looks drawn or chosen: names of hosts, of
variables and of tables are given to the same calls.
"""

from __future__ import annotations

from kb.text.secret_rule import (
    CHOSEN,
    FIRST_LETTERS,
    KEYS_OF_SECRETS,
    PLAIN_VALUE,
    RANDOM,
    secret_rule,
)

_STRING = r"[bruf]?(?:\\{0,3}['\"])"
_USER = r"['\"][\w.@+\\-]{1,64}\\{0,3}['\"]"
# Calls that are given a name and then its password.
_PAIRED = (
    r"login|log_?in|sign_?in|basic_?auth|digest_?auth|authenticate|auth|(?:plain|static)?credentials?"
    r"(?:provider)?|with_?credentials|minio|get_?connection|create_?user|add_?user|password_?auth"
)
# Calls that are given a secret alone, or behind what is no string.
_SINGLE = (
    r"login|log_?in|sign_?in|authenticate|bearer_?auth|auth|secret_?str|fernet"
    r"|(?:set|with|use|add)_?(?:api_?|access_?|auth_?|bearer_?|secret_?)?(?:token|key|secret|pass(?:word)?)"
)
# Vendors' clients and trackers are opened with the key itself.
_CLIENT = (
    r"(?:Existing)?Experiment|OpenAI|Anthropic|Github|Gitlab|HfApi|HubApi|InferenceClient|Bot"
    r"|[A-Z]\w{0,30}?(?:Client|Api|API|Bot|Notifier|SDK)"
)
_SIGNED = r"(?=[^'\"]{0,64}[A-Z!#%^*@$])"  # a host or a port in small letters is none
_LETTERS = r"(?:[A-Z]{16}|[a-z]{16})"  # what mail services give out for programs
# Nor are "replica-2" and "SHA-256".
_SECRET = (
    rf"(?!{PLAIN_VALUE}|<redacted|(?:[a-z]{{2,8}}-?[0-9]{{1,2}}|[A-Z]{{2,6}}-?[0-9]{{1,4}})['\"\\])"
    rf"{CHOSEN}"
)

CODE_RULES = (
    secret_rule(
        "secret",
        "login(|log_in(|signin(|sign_in(|auth(|authenticate(|credential|minio(|connect|provider(|dial(|user(|auth=(",
        # A name, then a password; before them hosts and ports.
        rf"((?i:(?:{_PAIRED})\()\s{{0,8}}(?:[^()\n,]{{1,120}},\s{{0,8}}){{0,3}}?"
        rf"{_USER},\s{{0,8}}{_STRING})(?:{_SECRET}|{_LETTERS})(?=\\{{0,3}}['\"])"
        rf"|((?i:connect|connection|dial)\(\s{{0,8}}(?:[^()\n,]{{1,120}},\s{{0,8}}){{1,3}}?"
        rf"{_USER},\s{{0,8}}{_STRING}){_SIGNED}{_SECRET}(?=\\{{0,3}}['\"])"
        rf"|(\bauth=\(\s{{0,4}}{_USER},\s{{0,4}}{_STRING})(?!{PLAIN_VALUE}|<redacted)"
        r"[^\s'\"]{4,256}(?=\\{0,3}['\"])",
        gate=r"(?:login|log_in|sign_?in|minio|auth|authenticate|credentials?|provider|connect|connection"
        r"|dial|user)\(|\bauth=\(",
        closer=r"(?:login|log_in|sign_?in|minio|auth|authenticate|credentials?|provider|connect|connection"
        r"|dial|user)\([^\n]*,[^\n]*['\"]|\bauth=\(",
    ),
    secret_rule(
        "secret",
        "login(|log_in(|signin(|sign_in(|auth(|authenticate(|secretstr(|secret_str(|fernet("
        "|token(|key(|secret(|pass(|password(",
        # Go's panics show strings among addresses.
        rf"((?i:(?:{_SINGLE})\()[^'\"\n]{{0,160}}?{_STRING})"
        # A path of a store is none.
        rf"(?![A-Za-z_]{{2,32}}[0-9]{{0,4}}/){RANDOM}(?=\\{{0,3}}['\"])",
        gate=r"(?:login|log_?in|sign_?in|auth|authenticate|secret_?str|fernet|token|key|secret"
        r"|pass(?:word)?)\(",
    ),
    secret_rule(
        "secret",
        "experiment(|openai(|anthropic(|github(|gitlab(|api(|client(|bot(|notifier(|sdk(",
        rf"(\b(?:{_CLIENT})\(\s{{0,8}}{_STRING}){RANDOM}(?=\\{{0,3}}['\"])",
        gate=r"(?:experiment|openai|anthropic|github|gitlab|api|client|bot|notifier|sdk)"
        r"\(\s*[bruf]?\\*['\"]",
    ),
    secret_rule(
        "secret",
        "userpwd|curlopt_",
        r"(\bCURLOPT_(?:PROXY)?USERPWD[ ,=>]{1,4}['\"][^\s:'\"]{1,64}:)"
        r"(?!<redacted|\$|\{)[^\s'\"]{3,256}"
        r"|(\bCURLOPT_(?:PASSWORD|XOAUTH2_BEARER|KEYPASSWD|PROXYPASSWORD)[ ,=>]{1,4}['\"])"
        r"(?!<redacted|\$|\{)[^'\"\n]{3,256}",
        gate="curlopt_",
    ),
    secret_rule(
        "secret",
        "pass|pw|secret|key|credential|token",
        # The type between name and value: of Rust, Go, Python, TypeScript, C.
        rf"(?i){FIRST_LETTERS}((?:{KEYS_OF_SECRETS}|token|pwd)\b"
        r"(?:[ \t]{0,4}:[ \t]{0,4}[&\w.<>\[\]' |]{1,40}?"
        r"|[ \t]{1,4}(?:\[\]byte|string)|\[[0-9]{0,4}\])[ \t]{0,4}=[ \t]{0,4}"
        rf"(?:[\w.:]{{1,32}}\()?{_STRING})(?!{PLAIN_VALUE}|<redacted)"
        rf"(?:{CHOSEN}|{RANDOM})(?=\\{{0,3}}['\"])",
        gate=r"(?:pass\w*|pw|pwd|secrets?|key|token|credentials?|authtok|data|json|id)"
        r"(?:: ?[&a-z\[][^\n=:]{0,40}|[ \t]+(?:\[\]byte|string)[ \t]*"
        r"|\[[0-9]*\][ \t]*)=[ \t]*[a-z\"'\\]",
        closer=r"(?:pass(?:words?|wd|phrase|code)?|pw|pwd|secrets?|key|token|credentials?|authtok|data"
        r"|json|id)(?:[ \t]*:[ \t]*[&\w.<>\[\]' |]+|[ \t]+(?:\[\]byte|string)[ \t]*"
        r"|\[[0-9]*\][ \t]*)=[ \t]*[\w.:]*\(?\\*['\"]",
    ),
)
