"""Secrets known by the command in which they stand."""

from __future__ import annotations

import base64
import binascii
import re

from kb.text.secret_rule import CHOSEN, secret_rule

# What a base64 text says where it hides a secret: a setting, or a name and a password.
_SETTING = re.compile(r"(?i)pass|pwd|secret|key|token|auth|cred|[\w.-]{2}[:=]\S{6}")


def _hides_a_setting(encoded: str) -> bool:
    """Whether a base64 text is one of a setting or of credentials."""
    letters = encoded.rstrip("=")
    try:
        text = base64.b64decode(letters + "=" * (-len(letters) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    return _SETTING.search(text) is not None


COMMAND_RULES = (
    secret_rule(
        "secret",
        "curl |sshpass |login |mysql|redis-cli |ipmitool |openssl |ldap|mongo|lftp |https "
        "|htpasswd |rabbitmqctl |pass |-pw |freerdp|sqlcmd |mosquitto_|sqlplus |http -|http --"
        "|smbclient |sudo -s|unzip |7z |chpasswd|snmp|mc alias set |mc config host add |base64"
        "|-stdin|--with-token",
        r"(curl [^\n|]{0,200}?(?<= )(?:-u|--user|-U|--proxy-user)[ =]?"
        r"['\"]?[^\s:'\"]{1,64}:"
        r"|curl [^\n|]{0,200}?(?<= )--oauth2-bearer[ =]['\"]?"
        r"|\bhttps? [^\n|]{0,200}?(?<= )(?:-a|--auth)[ =]['\"]?[^\s:'\"]{1,64}:"
        r"|(?:sshpass|\b[a-z]{2,16} (?:[a-z]{2,12} )?login) [^\n|]{0,200}?(?<= )-p ?['\"]?"
        r"(?![0-9]{1,5}\b)"
        r"|\b(?:mongo[a-z]{0,8} [^\n|]{0,200}?(?<= )-p|(?:plink|pscp|psftp) [^\n|]{0,200}?(?<= )-pw"
        r"|(?:sqlcmd|bcp|mosquitto_[ps]ub) [^\n|]{0,200}?(?<= )-P"
        r"|keytool [^\n|]{0,200}?(?<= )-[a-z]{0,12}pass"
        r"|htpasswd (?:-[A-Za-z]{1,8} ){1,4}\S{1,200} \S{1,64}"
        r"|rabbitmqctl (?:add_user|change_password) \S{1,64}|vault login) ['\"]?"
        r"|x?freerdp [^\n|]{0,200}?(?<= )/p:['\"]?"
        r"|\blftp [^\n|]{0,200}?(?<= )-u ?['\"]?[^\s,]{1,64},"
        r"|\bsqlplus (?:-[A-Za-z]{1,8} ){0,4}\w{1,32}/"
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
        r"(?=['\"]? ?\| ?(?:sudo -S|chpasswd|[^\n|]{1,160}?(?:-stdin|--with-token)))"
        rf"|(\b(?:echo|printf) (?:-[ne] )?['\"]?)(?!<redacted)(?>{CHOSEN})"
        r"(?=['\"]? ?\| ?base64(?! ?(?:-d|-D|--decode)))",
        gate="curl |sshpass | login |mysql|redis-cli |ipmitool |openssl |ldap|mongo|lftp "
        "|https? -|vault login|htpasswd |rabbitmqctl |keytool |(?:plink|pscp|psftp) |freerdp"
        "|sqlcmd |bcp |mosquitto_"
        "|sqlplus |smbclient |sudo -s|unzip |7z |chpasswd|snmp|mc alias set |mc config host add "
        r"|\| ?base64|-stdin|--with-token",
    ),
    secret_rule(
        "secret",
        "<<<|send |auth |passwd",
        # Given as what is typed: a here-string, expect's answers, redis' own command.
        r"((?:sudo -S|\bsu |kinit|cryptsetup|passwd|-stdin|--with-token|base64)"
        r"[^\n|]{0,80}? ?<<< ?['\"]?"
        r"|\bsend (?:-- )?\")(?!<redacted)(?=[^\s'\"]{0,64}[0-9!#%^@*])[^\s'\"\\]{4,256}"
        rf"|((?:^|[\n>] ?)(?i:auth) )(?!<redacted){CHOSEN}(?=[ \t]{{0,4}}(?:\n|\Z))",
        gate='<<<|send ["-]|^auth |[\n>] ?auth ',
    ),
    secret_rule(
        "secret",
        "base64|b64decode|atob",
        # What is decoded right here and says a setting: the secret is but one step away.
        r"((?:\becho|\bprintf) (?:-[ne] )?['\"]?|base64 (?:-d|-D|--decode)[^\n|]{0,40}?<<< ?['\"]?"
        r"|(?:b64decode|\batob)\([br]?['\"])(?>[A-Za-z0-9+/]{16,4096}={0,2})"
        r"(?=['\"]? ?\| ?(?:openssl )?base64 (?:-d|-D|--decode)|['\"]?[ \t]{0,4}(?:\)|\n|\Z))",
        gate="base64 (?:-d|-D|--decode)|b64decode\\(|atob\\(",
        accepts=_hides_a_setting,
    ),
    secret_rule(
        "secret",
        "util config |util64 config |coscmd config ",
        r"((?:(?:obs|oss|tos)util(?:64)?|coscmd) config )(?=[^\n|]{0,300}?-[aiks][= ])"
        r"[^\n|<][^\n|]{0,600}",
    ),
    secret_rule(
        "cookie",
        "curl |wget ",
        r"(\b(?:curl|wget) [^\n|]{0,400}?(?<= )(?:-b|--cookie)[ =]?['\"]?)(?=[\w.-]{1,64}=)"
        r"(?:(?<=['\"])[^\n'\"]{4,4096}|\S{4,4096})",
        gate="curl |wget ",
        closer="(?:curl|wget) .*(?:-b|--cookie)",
    ),
)
