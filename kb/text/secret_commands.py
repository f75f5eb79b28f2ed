"""Secrets known by the command in which they stand."""

from __future__ import annotations

from kb.text.secret_rule import secret_rule

COMMAND_RULES = (
    secret_rule(
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
    secret_rule(
        "secret",
        "util config |util64 config |coscmd config ",
        r"((?:(?:obs|oss|tos)util(?:64)?|coscmd) config )(?=[^\n|]{0,300}?-[aiks][= ])"
        r"[^\n|<][^\n|]{0,600}",
    ),
)
