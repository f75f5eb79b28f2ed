"""Secrets of configuration languages: a keyword, then the value, without a sign between them."""

from __future__ import annotations

from kb.text.secret_rule import CHOSEN, PLAIN_VALUE, QUOTE, SET, secret_rule

_FIRM = rf"(?!{PLAIN_VALUE}|<redacted)"

SETTING_RULES = (
    secret_rule(
        "secret",
        "requirepass|masterauth|auth-pass|auth_pass|community|wpa-psk|wifi-sec.psk|psk=|stats auth",
        # Redis, keepalived, SNMP, wireless networks, HAProxy.
        r"((?<![\w.-])(?:requirepass|masterauth"
        r"|(?:sentinel )?auth[-_]pass(?: [\w.-]{1,64}(?= \S))?"
        rf"|r[ow]community6?|snmp-server community|wpa-psk|wifi-sec\.psk|psk="
        rf"|stats auth [\w.-]{{1,64}}:)[ \t]{{0,8}}['\"]?){_FIRM}(?!public\b)"
        r"(?:(?<=[:=])|(?<=[ \t'\"]))[^\s'\"]{4,512}",
        gate="requirepass|masterauth|auth[-_]pass|r[ow]community|server community|wpa-psk"
        r"|wifi-sec\.psk|psk=|stats auth ",
    ),
    secret_rule(
        "secret",
        "psk |xauth |eap |ntlm |createuser",
        # ipsec.secrets; snmpd's users with a password each for signing and for secrecy.
        rf"(: {{0,4}}(?:PSK|XAUTH|EAP|NTLM) ['\"]){_FIRM}[^'\"\n]{{4,512}}"
        rf"|(\bcreateUser (?:-e \S{{1,64}} )?[\w.-]{{1,64}} (?:MD5|SHA(?:-?[0-9]{{3}})?) ['\"]?)"
        rf"{_FIRM}[^\s'\"]{{4,256}}"
        r"(?:['\"]? (?:AES|DES)[0-9-]{0,4} ['\"]?[^\s'\"]{4,256})?",
        gate="(?:psk|xauth|eap|ntlm) ['\"]|createuser ",
    ),
    secret_rule(
        "secret",
        "password|secret|key|cipher|psk|community",
        # Switches and firewalls: how the value is written stands before it.
        r"((?i:\b(?:password|secret|key-string|key|psk|pre-shared-key"
        r"|community(?: (?:read|write))?)) (?:[05-9]|(?i:cipher|simple|irreversible-cipher"
        r"|plain-text|encrypted|ciphertext|plaintext|hash|sha256|sha512))[ \t]{1,4}['\"]?)"
        rf"(?![a-z0-9_.,;:-]{{1,256}}(?!\S)){_FIRM}"
        rf"(?:{CHOSEN}|[0-9A-F]{{10,256}}(?![\w.])|[^\s'\"]{{4,256}}(?<=[!#%^*@$]))",
        gate="(?:password|secret|key-string|key|psk|community|read|write)"
        " (?:[05-9] |cipher|simple|irreversible|plain|encrypted|hash|sha)",
    ),
    secret_rule(
        "secret",
        "basic_auth|basicauth|basic-auth|userpass|userpwd|_creds",
        rf"((?i:basic[_-]?auth|userpass|userpwd|_creds)(?:{QUOTE})?[ \t]{{0,4}}{SET}"
        rf"[ \t]{{0,4}}(?:{QUOTE})?[\w.@+-]{{1,64}}:){_FIRM}{CHOSEN}",
        gate="(?:basic[_-]?auth|userpass|userpwd|_creds)",
    ),
    secret_rule(
        "secret",
        "user ",
        # Redis' list of users.
        r"(\b(?i:user) [\w.-]{1,64} (?:on|off) (?:[~&+-]\S{1,64} ){0,8}[>#])(?!<redacted)\S{4,256}",
        gate=" o(?:n|ff) (?:[~&+-][^ ]+ )*[>#]",
    ),
    secret_rule(
        "secret",
        "gossip|encrypt",
        rf"((?<![\w.-])encrypt(?:{QUOTE})?[ \t]{{0,4}}{SET}[ \t]{{0,4}}['\"])"
        r"[A-Za-z0-9+/]{22,64}={1,2}",
        gate=r"encrypt[\"']?[ \t]*[=:]",
    ),
    secret_rule(
        "token",
        "csrf|xsrf|authenticity_token",
        # As a header, in a form, in an address.
        r"(?i)((?:x-)?(?:csrf|xsrf)-?token['\"]?[ \t]{0,4}[:=][ \t]{0,4}['\"]?"
        r"|(?:csrfmiddlewaretoken|_?csrf(?:_token)?|_xsrf|authenticity_token|csrf-token)['\"]"
        r"[ \t]{1,4}(?:value|content)=['\"]"
        r"|(?<![A-Za-z])(?:_xsrf|_csrf|csrf)=)(?=[^\s;'\"]{0,64}[0-9])(?!<redacted)"
        r"[\w%.+/=:|-]{16,4096}",
        gate="csrf|xsrf|authenticity_token",
    ),
    secret_rule(
        "cookie",
        "sid=|sid:|session_key=",
        # A session's number of drawn letters; those of jobs are figures, hashes or names.
        r"((?<![A-Za-z])(?:sid|session_key)[=:] ?['\"]?)(?=[a-z0-9_-]{0,64}[A-Z])"
        r"(?=[A-Z0-9_-]{0,64}[a-z])(?=[A-Za-z_-]{0,64}[0-9])[A-Za-z0-9_-]{20,256}(?![\w.-])",
        gate=r"(?:sid|session_key)[=:] ?['\"]?[a-z0-9_-]{20}",
    ),
    secret_rule(
        "cookie",
        "cookie",
        # A value in quotation marks.
        r"((?i:\b(?:set-)?cookie):[ \t]{0,4}[\w.-]{1,64}=)\"[^\"\n]{4,4096}\"[^\n'\"]{0,1024}",
        gate='cookie:[ \t]*[\\w.-]+="',
    ),
)
