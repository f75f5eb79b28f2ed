"""Secrets known by what stands before them: a key, a header, a word of a sentence."""

from __future__ import annotations

from kb.text.secret_rule import (
    CHOSEN,
    FIRST_LETTERS,
    HEADER,
    IS,
    KEYS_OF_SECRETS,
    PLAIN_VALUE,
    QUOTE,
    QUOTED,
    RANDOM,
    SET,
    START,
    VALUE,
    secret_rule,
)

VALUE_RULES = (
    secret_rule(
        "credentials",
        "%3a%2f%2f",
        r"(?i)(%3A%2F%2F[^\s/&%]{1,64}%3A)(?!<redacted)[^\s&]{1,256}?(?=%40)",
    ),
    secret_rule(
        "credentials",
        "://",
        # A mark in the name holds no colon before a password.
        r"(://)(?!<redacted:credentials>)(?:<redacted:[a-z-]{1,16}>|(?!<redacted:)[^\s/:@'\"]){0,256}"
        r":[^\s/@'\"]{1,256}(?:@[^\s/@'\"?#,;]{1,128}){0,3}"
        r"(?=@)",
        gate=r"://[^\s/'\"]+@",
    ),
    secret_rule(
        "cookie",
        "cookie",
        rf"(?i)(\bcookie(?:{QUOTE})?\s{{0,4}}[:：]\s{{0,4}}(?:{QUOTE})?)"
        r"(?=[\w.-]{1,64}=[^\s=])[^\n'\"]{4,4096}",
    ),
    secret_rule(
        "token",
        "authorization|bearer |basic ",
        rf"((?i:authorization)(?:{QUOTE})?\s{{0,4}}{SET}\s{{0,4}}(?:{QUOTE})?"
        rf"(?:(?i:bearer|basic|token|apikey|negotiate) {{1,4}}(?!(?i:{PLAIN_VALUE}|tokens?\b))"
        rf"|(?={RANDOM}))"
        rf"|(?i:bearer) (?={HEADER}{{16}}|(?={HEADER}{{8}}){HEADER}{{0,15}}[0-9])"
        rf"|(?i:basic) (?=.[A-Za-z0-9+/]{{0,64}}?[A-Z0-9=])(?={HEADER}{{16}}))"
        rf"{HEADER}{{6,}}",
    ),
    secret_rule(
        "token",
        "wandb login|wandb.login|api key|api_key|api-key",
        r"(wandb login (?:--\S{1,200} ){0,4})(?!<redacted|-)[A-Za-z0-9._~+/=-]{16,}"
        r"|((?i:wandb[. ]login|api[ _-]key)[^\n]{0,160}?(?<![0-9A-Za-z]))"
        r"[0-9a-f]{40}(?![0-9a-f])",
    ),
    secret_rule(
        "secret",
        "--",
        rf"(?i)(?<![A-Za-z0-9_.-])(--(?:[A-Za-z0-9_.-]{{0,48}}?(?:{KEYS_OF_SECRETS})|token|m_key)"
        rf"(?: (?=[^\s-](?:\S{{7}}|\S{{0,6}}[0-9]))|{QUOTE},\s{{0,4}}(?={QUOTE}[^-]))"
        rf"(?:{QUOTE})?)(?!{PLAIN_VALUE})(?:{QUOTED}|(?<![\"']){VALUE})",
        gate=rf"{KEYS_OF_SECRETS}|--token|--m_key",
    ),
    secret_rule(
        "secret",
        "pass|pw|secret|key|credential|token|dockerconfig",
        rf"(?i){FIRST_LETTERS}((?:{KEYS_OF_SECRETS}"
        # PWD is also where a job ran, and lower-case names in _token are counts and words.
        rf"|pwd(?!\s{{0,4}}{SET}?\s{{0,4}}(?:{QUOTE})?[/~])|(?-i:_TOKEN)"
        rf"|_token(?=(?:{QUOTE})?\]?\s{{0,4}}{SET}\s{{0,4}}(?:{QUOTE})?{RANDOM}))"
        rf"(?:{QUOTE})?\]?(?:\s{{0,4}}{SET}\s{{0,4}}"
        # What stands behind "secret" is mostly its name.
        rf"|(?<=[\"']),\s{{0,4}}(?={QUOTE}[^\s'\"]{{0,64}}[0-9])"
        rf"|(?<=[a-z])(?<!\bsecret) (?=[^\s-](?:[^\s-]{{7}}|(?=\S{{0,64}}[0-9])\S{{7}})))"
        rf"(?:\[(?={QUOTE}(?!{PLAIN_VALUE}))|[bru]?{QUOTE})?)(?!{PLAIN_VALUE})"
        rf"(?:(?<=\[)[^\]\n]{{4,4096}}|{QUOTED}|(?<![\"'\[]){VALUE})",
        gate=rf"{KEYS_OF_SECRETS}|pwd|_token",
    ),
    secret_rule(
        "secret",
        "name|key=",
        # Kubernetes, Hadoop, .NET and JSON: the name on one line, the value on this or the next.
        r"(?i)((?:name|\bkey(?==))[ \t>=:'\"]{1,8}[\w.-]{0,48}?"
        rf"(?:{KEYS_OF_SECRETS}|(?-i:_TOKEN))[\w.-]{{0,16}}"
        rf"(?:{QUOTE}|</name>)?[^\n]{{0,4}}(?:\n[^\n]{{0,80}}?)?\bvalue"
        rf"(?:{QUOTE})?(?:[ \t]{{0,4}}{SET}|>)[ \t]{{0,4}}(?:{QUOTE})?)"
        rf"(?!{PLAIN_VALUE})(?:{QUOTED}|(?<![\"']){VALUE})",
        gate=rf"{KEYS_OF_SECRETS}|_token",
    ),
    secret_rule(
        "secret",
        "pass|pw|secret|key|credential|token|dockerconfig",
        rf"(?i)((?:<|&lt;)[\w.:-]{{0,48}}?(?:{KEYS_OF_SECRETS})[\w.-]{{0,16}}(?:>|&gt;))"
        rf"(?!{PLAIN_VALUE}|redacted)[^<>&\s]{{4,4096}}(?=<|&lt;)",
        gate=KEYS_OF_SECRETS,
    ),
    secret_rule(
        "secret",
        "pass",
        rf"(?<![A-Za-z])((?:(?i:pass|(?:user|root|admin|db|smtp|redis|pg|my|ssh)_?pass)"
        rf"|[A-Z0-9_]{{0,48}}_PASS)(?:{QUOTE})?"
        rf"[ \t]{{0,4}}{SET}[ \t]{{0,4}}(?:{QUOTE})?)(?!{PLAIN_VALUE}){CHOSEN}",
        gate=rf"pass(?:{QUOTE})?[ \t]{{0,4}}{SET}",
    ),
    secret_rule(
        "secret",
        "pass|pw",
        rf"((?<![A-Za-z])(?i:pass(?:words?|wd|phrase|code)?|pwd?)"
        rf"(?: (?i:is|was):?| (?i:for|of) [^\n:：]{{1,40}}[:：]) {{1,4}}['\"]?)"
        rf"(?!{PLAIN_VALUE}){CHOSEN}",
        gate="(?:pass[a-z]{0,7}|pwd?) (?:is|was|for|of) ",
    ),
    secret_rule(
        "secret",
        "app.token|provider.token|identified ",
        rf"((?:App|Provider)\.token(?:{QUOTE})?\s{{0,4}}{SET}\s{{0,4}}(?:{QUOTE})?"
        rf"|(?i:\bidentified (?:with \S{{1,64}} )?by ['\"]))(?!{PLAIN_VALUE}|<redacted)"
        r"[^\s\"']{4,4096}",
    ),
    secret_rule(
        "secret",
        "ak",
        rf"(?i)(?<![A-Za-z0-9])(ak[ /、,&和]{{1,4}}sk[ \t]{{0,4}}{IS}?[ \t]{{0,4}})"
        r"(?=[A-Z+/]{0,64}[0-9])[A-Z0-9+=_-]{8,64}[ \t]{0,3}[ /,，、:][ \t]{0,3}"
        r"[A-Z0-9+/=_-]{16,4096}",
        gate="ak[ /、,&和]{1,4}sk",
    ),
    secret_rule(
        "secret",
        "ak|sk",
        rf"(?i)(?<![A-Za-z0-9])([as]k(?:{QUOTE})?\]?[ \t]{{0,4}}{SET}"
        rf"[ \t]{{0,4}}(?:{QUOTE})?){RANDOM}",
        gate=rf"[as]k(?:{QUOTE})?\]?[ \t]{{0,4}}{SET}[ \t]{{0,4}}"
        rf"(?:{QUOTE})?[A-Za-z0-9+/_-]{{12}}",
    ),
    secret_rule(
        "secret",
        "auth",
        rf"((?<![A-Za-z])_?auth(?:{QUOTE})?[ \t]{{0,4}}{SET}[ \t]{{0,4}}(?:{QUOTE})?)"
        r"(?=[a-z+/]{0,64}[A-Z0-9=])[A-Za-z0-9+/]{12,4096}={0,2}(?![\w.:/-])",
        gate=rf"auth(?:{QUOTE})?[ \t]{{0,4}}{SET}[ \t]{{0,4}}(?:{QUOTE})?[A-Za-z0-9+/]{{12}}",
    ),
    secret_rule(
        "token",
        "token|令牌|key",
        START + r"((?i:(?:--|x-(?:[a-z]{1,20}-){0,3})?token|令牌|(?:api|access|secret)[ _-]?key)"
        rf"(?:{QUOTE})?\]?[ \t]{{0,4}}{IS}[ \t]{{0,4}}(?:{QUOTE})?){RANDOM}",
        gate=rf"(?:token|令牌|key)(?:{QUOTE})?\]?[ \t]{{0,4}}{IS}",
    ),
    secret_rule(
        "secret",
        "密码|口令|密钥|秘钥",
        r"((?:密码|口令|[密秘]钥)\s{0,4}(?:[是为]?[:：=]|[是为])\s{0,4})(?!<redacted)[!-;=-~]{4,4096}",
    ),
    secret_rule(
        "secret",
        "密码|口令|pw|login|creds|账号|用户名|user|登",
        rf"((?:密码|口令|(?<![A-Za-z])(?i:pw))[ \t:=]{{1,3}}|(?:密码|口令)[\u4e00-\u9fff]{{1,6}}"
        rf"|用 ?[a-zA-Z][\w.@-]{{0,64}} ?/ ?(?=\S{{6,64}} ?登[录陆])"
        rf"|(?i:login|creds|账号|用户名|user(?:name)?)[:：=] ?[\w.@-]{{1,64}} ?/ ?)"
        rf"(?!{PLAIN_VALUE}){CHOSEN}",
        gate=r"密码|口令|pw[ \t:=]{1,3}[!-~]{6}"
        r"|(?:login|creds|账号|用户名|user(?:name)?)[:：=] ?[\w.@-]{1,64} ?/|登[录陆]",
    ),
    secret_rule(
        "secret",
        "_key",
        rf"((?<![A-Za-z0-9_])[A-Z][A-Z0-9_]{{1,48}}_KEY(?:{QUOTE})?\]?[ \t]{{0,4}}{SET}"
        rf"[ \t]{{0,4}}(?:{QUOTE})?)(?=[\w+/=-]{{20}}){RANDOM}",
        gate=rf"_key(?:{QUOTE})?\]?[ \t]{{0,4}}{SET}",
    ),
)
