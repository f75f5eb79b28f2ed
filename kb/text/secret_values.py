"""Secrets known by what stands before them: a key, a header, a word of a sentence."""

from __future__ import annotations

from kb.text.secret_rule import (
    BELOW,
    CHOSEN,
    FIRST_LETTERS,
    HEADER,
    IS,
    KEYS_OF_SECRETS,
    MIXED,
    PLAIN_VALUE,
    QUOTE,
    QUOTED,
    RANDOM,
    SET,
    START,
    VALUE,
    secret_rule,
)

# "Is changed to", in Chinese; "is the", in English.
_CHANGED = (
    " ?[\u4e00-\u9fff]{0,8}?(?:(?:[改换变]|设置?|重置|更新)[成为到]|是|用)了?[ :：“\"「'`]{0,3}"
)
_IS_THE = "['\"`]? (?:is|as|for) (?:the|my|our|your|an?) (?:[a-z-]{1,12} ){0,2}"

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
        r"(://)(?!<redacted:credentials>|(?i:user(?:name)?:pass(?:word|wd)?@))(?:<redacted:[a-z-]{1,16}>|(?!<redacted:)[^\s/:@'\"]){0,256}"
        r":[^\s/@'\"]{1,256}(?:@[^\s/@'\"?#,;]{1,128}){0,3}"
        r"(?=@|&(?:#64|#x40|commat);|\\u0040)",
        gate=r"://[^\s/'\"]+(?:@|&(?:#64|#x40|commat);|\\u0040)",
    ),
    secret_rule(
        "credentials",
        "@",
        # Without a scheme: Go's data sources, and a name and a password before host and port.
        r"((?<![\w./:@<-])[A-Za-z][\w.-]{0,63}:)(?:[^\s@'\"<]{3,128}(?=@(?:tcp|unix)\()"
        r"|(?=[^\s@]{0,64}[0-9!#%^*])[^\s:/@'\"<]{6,128}"
        r"(?=@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}(?::[0-9]{2,5}(?![\w:])|/)))",
    ),
    secret_rule(
        "secret",
        ":",
        # A line of .pgpass: host, port, database, user.
        rf"((?<![\w.:*/-])[\w.*-]{{1,128}}:(?:[0-9]{{4,5}}|\*):(?=[A-Za-z*_])[\w.*-]{{1,64}}"
        rf":(?=[A-Za-z*_])[\w.*@-]{{1,64}}:)(?=[^\s:]{{8}})"
        rf"(?=\S{{0,64}}[!#%^@*$]|(?=[a-z0-9]{{0,64}}[A-Z])[A-Z0-9]{{0,64}}[a-z])(?!{PLAIN_VALUE}){CHOSEN}",
        gate=r":(?:[0-9]{4,5}|\*):[a-z*_][\w.*-]*:[a-z*_][\w.*@-]*:[!-~]",
    ),
    secret_rule(
        "cookie",
        "cookie",
        rf"(?i)(\bcookie(?:{QUOTE})?\s{{0,4}}[:：]\s{{0,4}}(?:{QUOTE})?)"
        r"(?=[\w.-]{1,64}=[^\s=])[^\n'\"]{4,4096}",
    ),
    secret_rule(
        "cookie",
        "cookie",
        # Given by code and in dictionaries.
        rf"(?i)(\bcookies?\s{{0,4}}[=:]\s{{0,4}}(?:dict\(|\{{))(?!<redacted)"
        r"(?=[^{}()\n]{0,128}?[:=] ?['\"][^\s'\"]{0,64}[0-9])[^{}()\n]{8,4096}"
        rf"|(\bcookies?[ \t]{{0,4}}=[ \t]{{0,4}}{QUOTE})(?=[\w.-]{{1,64}}=[^\s=])[^\n'\"]{{4,4096}}"
        rf"|((?:set_?cookie|cookies\.set|add_cookie)\(\s{{0,4}}{QUOTE}[\w.-]{{1,64}}{QUOTE},"
        rf"\s{{0,4}}{QUOTE})(?!<redacted)[^\s'\"]{{6,4096}}",
        gate="cookie",
        closer="cookies?[ \t]*=|cookies?: *\\{|cookie\\(|cookies\\.set",
    ),
    secret_rule(
        "cookie",
        "sess|csrf|xsrf|connect.sid|_oauth2_proxy|\t/",
        # By the names that servers give them, and in a browser's file of cookies.
        r"((?<![A-Za-z])(?:J?SESSION(?:ID)?|PHPSESSID|_?sessionid|connect\.sid|_oauth2_proxy"
        r"|_gitlab_session|csrftoken|csrfmiddlewaretoken|XSRF-TOKEN|_csrf)=)"
        r"(?=[^\s;]{0,64}[0-9])[\w%.+/=:-]{16,4096}"
        r"|(\t(?:TRUE|FALSE)\t/[^\t\n]{0,64}\t(?:TRUE|FALSE)\t[0-9]{1,12}\t[^\t\n]{1,64}\t)"
        r"(?!<redacted)\S{4,4096}",
        gate="(?:session(?:id)?|sessid|csrftoken|csrfmiddlewaretoken|xsrf-token|_csrf|connect\\.sid"
        "|_oauth2_proxy|_gitlab_session)=\\w|\t(?:true|false)\t/",
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
        "pass|pw|secret|key|credential|token|dockerconfig|authtok",
        rf"(?i){FIRST_LETTERS}((?:{KEYS_OF_SECRETS}"
        # PWD is also where a job ran, and lower-case names in _token are counts and words.
        rf"|pwd(?!\s{{0,4}}{SET}?\s{{0,4}}(?:{QUOTE})?[/~])|(?-i:_TOKEN)"
        rf"|_token(?=(?:{QUOTE})?\]?\s{{0,4}}{SET}\s{{0,4}}(?:{QUOTE})?{RANDOM}))"
        rf"(?:{QUOTE})?\]?(?:\s{{0,4}}{SET}{BELOW}"
        # What stands behind "secret" is mostly its name.
        rf"|(?<=[\"']),\s{{0,4}}(?={QUOTE}[^\s'\"]{{0,64}}[0-9])"
        # Behind a name alone stands another one where names are listed.
        rf"|(?<=[a-z])(?<!\bsecret) (?!(?-i:[A-Z]{{2,16}}(?:_[A-Z0-9]{{1,16}}){{1,6}}(?!\S)))"
        rf"(?=[^\s-](?:[^\s-]{{7}}|(?=\S{{0,64}}[0-9])\S{{7}})))"
        rf"(?:\[(?={QUOTE}(?!{PLAIN_VALUE}))|[bru]?{QUOTE})?)(?!{PLAIN_VALUE})"
        rf"(?:(?<=\[)[^\]\n]{{4,4096}}|{QUOTED}|(?<![\"'\[]){VALUE})",
        gate=rf"{KEYS_OF_SECRETS}|pwd|_token",
    ),
    secret_rule(
        "secret",
        "name|key=",
        # Kubernetes, Hadoop, .NET and JSON: the name on one line, the value on this or the next.
        r"(?i)((?:name|\bkey(?==))[ \t>=:'\"]{1,8}[\w.-]{0,48}?"
        rf"(?:{KEYS_OF_SECRETS}|(?-i:_TOKEN(?!S)))[\w.-]{{0,16}}"
        rf"(?:{QUOTE}|</name>)?[^\n]{{0,4}}(?:\n[^\n]{{0,80}}?)?\bvalue"
        rf"(?:{QUOTE})?(?:[ \t]{{0,4}}{SET}|>)[ \t]{{0,4}}(?:{QUOTE})?)"
        rf"(?!{PLAIN_VALUE})(?:{QUOTED}|(?<![\"']){VALUE})",
        gate=rf"{KEYS_OF_SECRETS}|_token",
        closer=rf"(?:name|key=)[ \t>=:'\"]+[\w.-]*(?:{KEYS_OF_SECRETS}|_token)",
    ),
    secret_rule(
        "secret",
        "pass|pw|secret|key|credential|token|dockerconfig",
        rf"(?i)((?:<(?!redacted:)|&lt;)[\w.:-]{{0,48}}?(?:{KEYS_OF_SECRETS})[\w.-]{{0,16}}(?:>|&gt;))"
        rf"(?!{PLAIN_VALUE}|redacted)[^<>&\s]{{4,4096}}(?=<|&lt;)",
        gate=KEYS_OF_SECRETS,
    ),
    secret_rule(
        "secret",
        "pass|pw|secret|key|credential|token",
        # Terraform's: the name stands lines above.
        rf"(?i)(\b(?:variable|output|locals?)[ \t]{{1,4}}{QUOTE}[\w.-]{{0,48}}?"
        rf"(?:{KEYS_OF_SECRETS}|token(?!s))[\w.-]{{0,16}}{QUOTE}[^\n]{{0,40}}"
        rf"(?:\n[^\n]{{0,120}}){{0,4}}?\b(?:default|value)[ \t]{{0,16}}={BELOW}{QUOTE})"
        rf"(?!{PLAIN_VALUE})(?:{QUOTED})",
        gate=rf"{KEYS_OF_SECRETS}|_token",
        closer=rf"\b(?:variable|output|locals?)[ \t]{{1,4}}{QUOTE}",
    ),
    secret_rule(
        "secret",
        "pass|pw|secret|key|credential|token",
        # A table's row: in Markdown, of a database, in HTML.
        rf"(?i){FIRST_LETTERS}((?:{KEYS_OF_SECRETS}|pwd|token)[`*\"']{{0,3}}"
        rf"(?:[ \t]{{0,64}}[|│┃][ \t]{{0,64}}"
        rf"|[ \t]{{0,8}}</t[dh]>\s{{0,8}}<td[^<>\n]{{0,64}}>[ \t]{{0,8}})"
        rf"(?:<code>)?[`*\"']{{0,3}})(?!{PLAIN_VALUE})(?:{MIXED}|(?=[^\s|<]{{8}}){CHOSEN})",
        gate=rf"{KEYS_OF_SECRETS}|(?:token|pwd)[`*\"' \t]*(?:[|│┃]|</t[dh])",
        closer=rf"(?:{KEYS_OF_SECRETS}|token|pwd)[`*\"' \t]*(?:[|│┃]|</t[dh])",
    ),
    secret_rule(
        "secret",
        "mnemonic|phrase|words|助记词",
        rf"(?i)((?:mnemonic|(?:seed|recovery|backup)[ _-](?:phrase|words)|助记词)(?:{QUOTE})?"
        rf"[ \t]{{0,4}}{IS}[ \t]{{0,4}}(?:{QUOTE})?)"
        r"[a-z]{3,10}(?:[ ,]{1,2}[a-z]{3,10}){11,23}",
        gate=r"mnemonic|(?:seed|recovery|backup)[ _-](?:phrase|words)|助记词",
    ),
    secret_rule(
        "code",
        "code|码|otp|pin",
        # A code by which somebody shows who he is, or fetches what was shared.
        r"(?i)((?:提取|访问|验证|校验|动态|激活|邀请|取件)码(?:是|为)?[ \t:：]{1,3}"
        r"|\b(?:verification|one-time|otp|2fa|mfa|pairing|recovery|security) "
        r"(?:code|pin|passcode)s?"
        r"(?: is| was)?[ \t:]{1,3}|\b(?:otp|pin)(?: is|[:=])[ \t]{0,3})(?=[A-Z-]{0,12}[0-9])"
        r"[A-Z0-9]{4,12}(?:-[A-Z0-9]{4,8}){0,4}(?![\w.])",
        gate="(?:提取|访问|验证|校验|动态|激活|邀请|取件)码"
        "|(?:verification|one-time|otp|2fa|mfa|pairing|recovery|security) (?:code|pin|passcode)"
        r"|\b(?:otp|pin)(?: is|[:=])",
    ),
    secret_rule(
        "secret",
        "pass",
        # A compiler's passes have names, too.
        rf"(?<![A-Za-z])(?<!(?i:llvm|mlir) )(?<!(?i:compiler|lowering|inductor) )"
        rf"((?:(?i:pass|(?:user|root|admin|db|smtp|redis|pg|my|ssh|storage|store|key"
        rf"|ldap|mail|ftp|http|proxy|vpn|bind|login|become|sudo|wifi|mqtt)_?pass)"
        rf"|[A-Z0-9_]{{0,48}}_PASS)(?:{QUOTE})?"
        rf"[ \t]{{0,4}}{SET}[ \t]{{0,4}}(?:{QUOTE})?)(?!{PLAIN_VALUE}){CHOSEN}",
        gate=rf"pass(?:{QUOTE})?[ \t]{{0,4}}{SET}",
    ),
    secret_rule(
        "secret",
        "pass|pw",
        rf"((?<![A-Za-z])(?i:pass(?:words?|wd|phrase|code)?|pwd?)"
        rf"(?: (?i:is|was)(?: now| still)?:?| (?i:for|of) [^\n:：]{{1,40}}[:：]"
        rf"| (?:has been |was |is |got )?(?:changed|set|reset|updated|rotated) (?:to|as):?"
        rf") {{1,4}}['\"]?)"
        rf"(?!{PLAIN_VALUE}){CHOSEN}",
        gate="(?:pass[a-z]{0,7}|pwd?) "
        "(?:is|was|for|of|has|got|changed|set|reset|updated|rotated)[: ]",
    ),
    secret_rule(
        "secret",
        "secret|token|api|access|credential",
        rf"(?i)(\b(?:secret|token|api[ -]?key|access[ -]?key|credentials?)"
        rf"(?: [a-z]{{1,8}}){{0,2}}?[ :=]{{1,3}}['\"`“]?){MIXED}",
        gate="secret|api[ -]?key|access[ -]?key|credential|token(?: [a-z]+)?(?: [a-z]+)?[ :=]+"
        "['\"`“]?[a-z0-9+/]{16}",
        closer="(?:secret|token|key|credentials?)(?: [a-z]{1,8}){0,3}[ :=]{1,3}"
        "['\"`“]?[a-z0-9+/]{16}",
    ),
    secret_rule(
        "secret",
        " is | as | for |是|作|这",
        # The value first: "… is the token".
        rf"(?<![!-~])['`]?(?:{MIXED}(?={_IS_THE}(?:token|secret|api key|access key|key\b))"
        rf"|(?!<redacted)(?>{CHOSEN})(?:(?={_IS_THE}pass(?:word|phrase|code))"
        r"|(?=[”」]? ?(?:是|就是|作为?|这个)(?:新的?|我的?)?"
        r"(?:密码|口令|[密秘]钥|令牌)(?!的|错))))",
        gate=r" (?:is|as|for) (?:the|my|our|your|an?) (?:[a-z-]+ )?(?:[a-z-]+ )?"
        r"(?:token|secret|api key|access key|key\b|pass)"
        r"|(?:是|作为?|这个)(?:新的?|我的?)?(?:密码|口令|[密秘]钥|令牌)",
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
        "密码|口令|password|passwd|pwd",
        # "The password is changed to", in Chinese.
        rf"((?:密码|口令|(?i:password|passwd|pwd)){_CHANGED})(?!{PLAIN_VALUE}){CHOSEN}",
        gate=r"密码|口令|(?:password|passwd|pwd) ?[^\x00-\x7f]",
    ),
    secret_rule(
        "secret",
        "密钥|秘钥|令牌|token|secret|key",
        rf"((?:[密秘]钥|令牌|(?i:token|secret|key)){_CHANGED}){RANDOM}",
        gate=r"[密秘]钥|令牌|(?:token|secret|key) ?[^\x00-\x7f]",
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
        "_key|_pat",
        rf"((?<![A-Za-z0-9_])[A-Z][A-Z0-9_]{{1,48}}_(?:KEY|PAT)(?:{QUOTE})?\]?[ \t]{{0,4}}{SET}"
        rf"[ \t]{{0,4}}(?:{QUOTE})?)(?=[\w+/=-]{{20}}){RANDOM}",
        gate=rf"_(?:key|pat)(?:{QUOTE})?\]?[ \t]{{0,4}}{SET}",
    ),
)
