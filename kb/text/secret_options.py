"""Secrets that a program is given on its command line, by the option that the program reads."""

from __future__ import annotations

from kb.text.secret_rule import CHOSEN, PLAIN_VALUE, RANDOM, secret_rule

_FIRM = rf"(?!{PLAIN_VALUE}|<redacted|-)"
_ARGS = r"[^\n|]{0,200}?(?<= )"
# Programs by the option before a password; what stands there is no port and no path.
_PROGRAMS = {
    "-p": "racadm|ilorest|redfishtool|cqlsh|evil-winrm|(?:crack|net)exec|cypher-shell|useradd"
    r"|usermod|ipmi-?(?:power|console|sensors|sel|fru|config)|bmc-(?:info|device|config)|influx"
    "|psexec|rdesktop|hponcfg|arangosh|rar|unrar|oras|ctr|psexec64",
    "-P": "isql|osql|tsql|mssql-cli|ssh-keygen|zip|storcli64?|ipmitool|isqlw|mqttx|ldapadd",
    "-N": "ssh-keygen",
    "-w": "kadmin(?:\\.local)?|nagios-plugin|check_\\w{1,32}",
    "-pw": "kadmin(?:\\.local)?|addprinc|cpw|putty|winscp",
    "-s": "ldappasswd",
    "-k": r"openssl enc|vastai",
    "-K": "openssl enc|openssl dgst",
}
_OPTIONS = "|".join(
    rf"\b(?:{programs})(?:\.exe)? {_ARGS}{option}" for option, programs in _PROGRAMS.items()
)
_PAIRED = (
    "(?:src-|dest-)?creds|user|userpwd|auth|basic-auth|http-auth|proxy-user|proxy-auth|userpass"
)
# Commands whose next word is the secret.
_WORDS = (
    r"user set password [0-9]{1,2}|set iDRAC\.Users\.[0-9]{1,2}\.Password|openssl passwd"
    r"(?: -(?:[0-9a-z]{1,8}|salt \S{1,32})){0,4}|mkpasswd(?: -m \S{1,16})?|wpa_passphrase \S{1,64}"
    r"|oathtool(?: -\S{1,24}){0,6}|vault operator unseal|ngrok (?:config add-)?authtoken"
    r"|cloudflared service install|rclone obscure|poetry config pypi-token\.\S{1,64}"
    r"|poetry config http-basic\.\S{1,64} \S{1,64}|npm config set \S{0,128}_auth(?:Token)?"
    r"|vastai set api-key|addauth digest [\w.-]{1,64}:|etcdctl user (?:add|passwd) [\w.-]{1,64}:"
    r"|net user \S{1,64}|net use (?:[A-Z*]: )?\\\\\S{1,256}(?: /user:\S{1,128})?"
    r"|nmcli [^\n|]{0,160}?psk|git-credential\S{0,16} \S{1,64}|docker swarm unlock"
    r"|comet login|mlx login|modelscope login|swanlab login|dvc remote modify \S{1,64} password"
)
# Programs that read their password from the pipe.
_READERS = (
    r"kinit|kadmin|cryptsetup|smbpasswd|ldappasswd|vncpasswd|su\b|passwd|docker (?:login|secret)"
    r"|podman (?:login|secret)|kubectl create secret|vault (?:login|kv|write)|gh (?:auth|secret)"
    r"|gpg|openssl (?:enc|passwd|pkcs|rsa)|wg (?:set|pubkey)|pass insert|secret-tool|ssh-add|mount"
    r"|[\w-]{2,16} login|chpasswd|wpa_passphrase|huggingface-cli|htpasswd"
)
_ECHO = r"\b(?:echo|printf) (?:-[neE]{1,3} )?(?:['\"]?%s(?:\\n)?['\"]? )?['\"]?(?:[\w.-]{1,32}:)?"

OPTION_RULES = (
    secret_rule(
        "secret",
        "--|-u",
        # A name and a password in one argument, of whatever program; "1000:1000" is none.
        rf"((?<![\w-])--(?:{_PAIRED})[ =]['\"]?[\w.@+\\-]{{1,64}}:){_FIRM}{CHOSEN}"
        rf"|(\b(?:curlie|xh|ab|hey|wrk|oras|ctr|nerdctl|elasticdump|smbmap|influx) {_ARGS}"
        rf"(?:-u|-U|-a|-A|--auth) ?['\"]?[\w.@+\\-]{{1,64}}:){_FIRM}{CHOSEN}",
        gate=rf"--(?:{_PAIRED})[ =]"
        r"|\b(?:curlie|xh|ab|hey|wrk|oras|ctr|nerdctl|elasticdump|smbmap|influx) ",
        closer=r"-(?:[ua]|-(?:[a-z-]+))[ =]?['\"]?[\w.@+\\-]+:",
    ),
    secret_rule(
        "secret",
        "['|[\"|', '|\", \"",
        # The same as a list of arguments.
        rf"(['\"](?:-[uUaA]|--(?:{_PAIRED}))['\"], ?['\"][\w.@+\\-]{{1,64}}:){_FIRM}"
        r"[^\s'\"]{4,256}(?=['\"])"
        r"|(['\"][^\s'\"]{0,100}?(?:sshpass|redis-cli|ipmitool|mysql[a-z]{0,8}|mongo[a-z]{0,8}|racadm"
        r"|sqlcmd|login|plink|unzip|zip|ldap[a-z]{2,8}|kinit)['\"]"
        r"(?:, ?['\"][^'\"\n]{0,200}['\"]){0,16}?"
        rf", ?['\"]-(?:p|P|a|w|pw)(?:['\"], ?['\"])?){_FIRM}(?![0-9]{{1,5}}['\"])"
        r"[^\s'\"]{4,256}(?=['\"])",
        gate=r"['\"]-(?:p|[uaw]['\"]|-(?:user|auth|creds|basic|http|proxy|src|dest))",
    ),
    secret_rule(
        "secret",
        " -p| -n '| -n \"| -n | -w | -s | -k ",
        rf"((?:{_OPTIONS}) ?['\"]?){_FIRM}(?![0-9]{{1,5}}(?![\w!#%^*@])|\S{{0,64}}/)"
        r"[^\s'\"|;]{4,256}",
        gate=r"racadm|ilorest|redfishtool|cqlsh|winrm|mapexec|netexec|cypher-shell|useradd|usermod"
        r"|ipmi-?(?:power|console|sensors|sel|fru|config|tool)|bmc-[idc]|\binflux |psexec|rdesktop"
        r"|hponcfg|arangosh|rar |\boras |\bctr |[io]sql|tsql|mssql-cli|ssh-keygen|\bzip |storcli"
        r"|mqttx|ldap|kadmin|check_\w+ |addprinc|\bcpw |putty|winscp|openssl |vastai ",
        closer=r"(?:racadm|ilorest|redfishtool|cqlsh|winrm|exec|shell|useradd|usermod|power|console"
        r"|sensors|sel|fru|config|tool|info|device|influx|psexec64|rdesktop|hponcfg|arangosh|rar|oras"
        r"|ctr|sqlw?|mssql-cli|keygen|zip|storcli(?:64)?|mqttx|ldap[a-z]+|local|kadmin|plugin|check_\w+"
        r"|addprinc|cpw|putty|winscp|enc|dgst|vastai)(?:\.exe)? [^\n]*-[pnwsk]",
    ),
    secret_rule(
        "secret",
        "snmp",
        # Of version 3: -A signs, -X hides; -a and -x name their methods.
        r"(\bsnmp[a-z]{2,12} [^\n|]{0,200}?(?<= )-[AX] ?['\"]?)(?!<redacted)[^\s'\"]{4,256}"
        r"(?:['\"]?(?: -[a-z] \S{1,64}){0,4} -[AX] ?['\"]?[^\s'\"]{4,256})?",
        gate="snmp[a-z]+ ",
        closer="snmp[a-z]+ .*-[ax]",
    ),
    secret_rule(
        "secret",
        "password|passwd|wpa_|oathtool|unseal|authtoken|cloudflared|obscure|poetry|npm config"
        "|api-key|addauth|etcdctl|net us|nmcli|unlock| login",
        rf"(\b(?:{_WORDS})(?:(?<=:)| ['\"]?)){_FIRM}(?!/)"
        rf"(?:{CHOSEN}|{RANDOM}|[A-Z2-7]{{16,128}}(?!\w))",
        gate=r"set password [0-9]|users\.[0-9]+\.password|openssl passwd|mkpasswd|wpa_passphrase"
        r"|oathtool|operator unseal|authtoken |service install|obscure|poetry config|npm config"
        r"|set api-key|addauth|etcdctl user|net user? |nmcli|docker swarm|login|dvc remote"
        "|git-credential",
    ),
    secret_rule(
        "secret",
        "echo |printf ",
        # Into a program that asks for it, on this line or, where a shell shows its steps, the next.
        rf"({_ECHO})(?!<redacted|[\w.-]{{1,32}}:<redacted)[^\s'\"|$<-][^\s'\"|]{{3,256}}"
        rf"(?=['\"]? ?(?:\| ?|\n[^\n]{{0,120}}?\+ )(?:sudo )?(?:{_READERS}))"
        # Into a file of secrets.
        rf"|({_ECHO})(?!<redacted|[\w.-]{{1,64}}:[0-9]{{1,5}}(?!\S))"
        rf"(?>{CHOSEN}|{RANDOM})(?=['\"]? ?>>? ?['\"]?[^\s'\"]{{0,128}}?"
        r"(?i:key|token|passw|secret|cred|netrc|pgpass|authinfo|\.auth))",
        gate=r"\b(?:echo|printf) [^\n|>]*[\n|>]",
    ),
    secret_rule(
        "secret",
        "convertto-securestring|/user:|pscredential|/rp",
        r"((?i:ConvertTo-SecureString (?:-String )?)['\"])(?!<redacted|\$)[^'\"\n]{4,256}"
        r"|((?i:\bnet use) [^\n]{0,200}?(?i:/user:)\S{1,128} ['\"]?)(?!<redacted|/)[^\s'\"]{4,256}"
        r"|((?i:\bschtasks) [^\n]{0,200}?(?i:/rp) ['\"]?)(?!<redacted|/)[^\s'\"]{4,256}",
        gate="convertto-securestring|net use|schtasks",
    ),
    secret_rule(
        "secret",
        "base64 |cat |xxd |head |more ",
        # What a file of secrets holds, shown by a command: lines of drawn letters alone.
        r"((?:^|(?<=[\s`;&]))(?:base64|cat|xxd -p|head|more)(?: -\S{1,8}){0,3} [\w./~$-]{0,120}?"
        r"(?i:key|token|secret|passw|cookie|cred)[\w-]{0,16}(?:\.(?!pub)\w{1,8})?[ \t]{0,4}\n"
        rf"[^\n]{{0,64}}?(?<![\w+/=-])){RANDOM}(?=[ \t\r]{{0,4}}(?:\n|\Z))",
        gate=r"\b(?:base64|cat|xxd -p|head|more) (?:-\S+ )*[\w./~$-]*"
        r"(?:key|token|secret|passw|cookie|cred)",
    ),
    secret_rule(
        "secret",
        "password from |token from |key from |password in |token in |password at ",
        rf"((?i:password|token|key) (?i:from|in|at) \S{{1,128}}: ){_FIRM}(?:{CHOSEN}|{RANDOM})",
    ),
)
