"""Secrets that a sentence gives away, in Chinese and in English."""

from __future__ import annotations

from kb.text.secret_rule import CHOSEN, PLAIN_VALUE, RANDOM, secret_rule

_FIRM = rf"(?!{PLAIN_VALUE}|<redacted)"
_NAMES = r"(?i:pass(?:words?|wd|phrase|code)?|pwd?)"
_ADMIN = r"(?i:admin|root|administrator|userid|sysadmin|superuser|ubuntu|sysop)"
# Four words or more with signs between them: a pass phrase as programs draw them.
_WORDS = r"(?:[A-Za-z]{3,12}[-_.]){3,11}[A-Za-z]{3,12}(?![\w.-])"
_DEVICE = (
    r"(?i:\b(?:bmc|idrac|ilo|ipmi|ibmc|webui)\b)"
    r"|密码|口令|账号|账户|帐号|登[录陆]|后台|管理口|带外|跳板机|堡垒机|控制台"
)

SENTENCE_RULES = (
    secret_rule(
        "secret",
        "pass|pw",
        # Where it is good comes between: "the password on gpu-3 is".
        rf"((?<![A-Za-z]){_NAMES} (?:is |was )?(?:generated |created |set )?"
        r"(?i:for|of|on|to|at|in|from) [^\n:：=]{1,60}?"
        rf"(?: is:?| was:?| = ?|[:：=]) ?['\"`]?){_FIRM}(?:{CHOSEN}|{_WORDS})"
        rf"|((?<![A-Za-z]){_NAMES}(?: is| was|[ \t]{{0,4}}[:=：])[ \t]{{1,4}}['\"`]?)"
        rf"{_FIRM}{_WORDS}",
        gate="(?:pass(?:words?|wd|phrase|code)?|pwd?) (?:for|of|on|to|at|in|from|is|was|=) "
        "|(?:password|phrase)[:=：][ \t]",
        closer="(?:pass(?:words?|wd|phrase|code)?|pwd?)"
        "(?: (?:is|was))?(?: (?:generated|created|set))?"
        "(?: (?:for|of|on|to|at|in|from) .*(?:is|was|[:=：])| is | was |[ \t]*[:=：][ \t])",
    ),
    secret_rule(
        "secret",
        "log in|log into|login|sign in|logged in|ssh in|log on",
        # A name, then its password, which no word names.
        r"((?i:\b(?:log(?:ged)? ?(?:in|on|into)|sign in|ssh in)(?:to)?(?: (?:to|on|at) \S{1,64})?"
        r" (?:as|with|using) (?:user )?['\"`]?)[\w.@-]{1,64}['\"`]?"
        rf"(?i: (?:with|and|using) | ?[/,] ?)(?i:(?:the )?{_NAMES}:? )?['\"`]?){_FIRM}"
        rf"(?![a-z]{{2,8}}[0-9]{{1,2}}(?:\.[0-9]{{1,2}})?(?!\S)){CHOSEN}",
        gate="(?:log|logged|ssh|sign|login) ?(?:in|on|into)?(?:to)? (?:as|with|using|to|on|at) ",
        closer="(?:log(?:ged)? ?(?:in|on|into)|sign in|ssh in)(?:to)? .*(?:as|with|using) ",
    ),
    secret_rule(
        "secret",
        "token|令牌|密钥|秘钥|key",
        # "Run with my token:", in Chinese.
        rf"((?:(?i:token|key)|令牌|[密秘]钥) ?[\u4e00-\u9fff]{{1,12}}[:：“\" ]{{1,3}}){RANDOM}",
        gate=r"(?:token|key) ?[^\x00-\x7f]|令牌|密钥|秘钥",
        closer=r"(?:token|key|令牌|密钥|秘钥) ?[^\x00-\x7f]+[:：“\" ]+[a-z0-9+/_-]{6}",
    ),
    secret_rule(
        "secret",
        "/",
        # The name of an administrator, a stroke, a password; or any name beside a word of logins.
        rf"((?<![\w/.~-]){_ADMIN} / )(?!\S{{0,128}}/){_FIRM}{CHOSEN}"
        rf"|((?:{_DEVICE})(?!学)[^\n]{{0,60}}?(?<![\w/.:~-])[A-Za-z][\w.-]{{1,31}} ?/ ?)"
        rf"(?!\S{{0,128}}/)(?=\S{{0,64}}[A-Z!#%^*@]){_FIRM}{CHOSEN}",
        gate=rf"(?:admin|root|administrator|userid|sysadmin|superuser|ubuntu|sysop) / "
        rf"|(?:{_DEVICE})[^\n]*[a-z][\w.-]* ?/ ?[!-~]{{6}}",
        closer="(?:admin|root|administrator|userid|sysadmin|superuser|ubuntu|sysop) / "
        rf"|(?:{_DEVICE}).*/",
    ),
    secret_rule(
        "secret",
        "密码|口令|账密|user|u/p|cred",
        # Both announced together.
        r"((?:账[号户]密码|用户名?密码|账密|用户名?[/和、 ]{1,3}密码|账号[/和、 ]{1,3}密码"
        r"|(?i:\buser(?:name)?[/ ]pass(?:word)?|\bu/p|\bcredentials?|\bcreds))[ :：=是为]{1,4}"
        rf"[\w.@-]{{1,64}}(?: ?[/:，,、] ?| )){_FIRM}{CHOSEN}"
        rf"|(密码|口令)(?=[!-~]{{0,64}}[A-Z!#%^*@]){_FIRM}{CHOSEN}",
        gate=r"密码|口令|账密|user(?:name)?[/ ]pass|\bu/p|credentials?[ :=]|creds[ :=]",
    ),
    secret_rule(
        "code",
        "提取码|分享码|访问码",
        # Net disks' have four letters, with or without figures.
        r"((?:提取|分享|访问)码(?:是|为)?[ :：]{1,3})[A-Za-z0-9]{4}(?![\w.])",
    ),
    secret_rule(
        "secret",
        "unseal key|recovery key|root token",
        r"((?i:(?:unseal|recovery) key [0-9]{1,2}|root token)[ \t]{0,4}[:：=][ \t]{0,4})"
        r"(?!<redacted)[A-Za-z0-9+/=._-]{20,256}",
    ),
    secret_rule(
        "secret",
        "334 |auth plain|auth login|auth xoauth2|auth cram",
        # A mail server's questions in base64, and their answers.
        r"(334 (?:UGFzc3dvcmQ6|VXNlcm5hbWU6)[^\n]{0,8}\n[^\n]{0,64}?(?<![A-Za-z0-9+/=]))"
        r"[A-Za-z0-9+/]{4,1024}={0,2}(?=['\"\\]{0,3}[ \t\r]{0,4}(?:\n|\Z))"
        r"|(\bAUTH (?:PLAIN|LOGIN|XOAUTH2|CRAM-MD5) )(?=[A-Za-z0-9+/]{0,64}[A-Z0-9=])"
        r"[A-Za-z0-9+/]{8,4096}={0,2}(?![\w-])",
        gate="334 (?:UGFzc3dvcmQ6|VXNlcm5hbWU6)|auth (?:plain|login|xoauth2|cram-md5) ",
    ),
    secret_rule(
        "token",
        "authorization%|bearer%|bearer+",
        # As addresses write a header.
        r"((?i:(?:authorization(?:%(?:25)?22)?%(?:25)?3A(?:%(?:25)?2[02]|\+){0,4})?"
        r"(?:bearer|basic)(?:%(?:25)?20|\+)))(?!<redacted)[A-Za-z0-9._~+/=-]{12,4096}",
        gate=r"(?:bearer|basic)(?:%(?:25)?20|\+)",
    ),
)
