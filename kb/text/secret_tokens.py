"""Secrets known by their own shape, wherever they stand: keys, tokens of vendors, webhooks."""

from __future__ import annotations

from kb.text.secret_rule import RANDOM, WORD, secret_rule

# Prefixes by the letters that follow them, at least so many; most are those of the rules of
# gitleaks, the others (of LangSmith, Pinecone, Tavily and such) were not compared with a source.
# https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml
_VENDORS = {
    "[A-Za-z0-9_=-]{20}": (
        "glrt- glcbt- glffct- glft- glimt- glagent- gloas- glptt- glsoat- GR1348941 dnkey-"
        " duffel_test_ duffel_live_ fo1_ fio-u- HRKU-AA pscale_tkn_ pscale_oauth_ pscale_pw_ EAAA"
        " sq0atp- sq0csp- sq0idp- tk-us- tfp_ ATATT3 ATCTT3 AQVN hf_oauth_ lsv2_pt_ lsv2_sk_ tvly-"
        " pcsk_ sb_secret_ dckr_oat_ CFPAT- tgp_v1_ csk-"
    ),
    "[A-Za-z0-9+/=]{24}": "whsec_ fm1a_ fm1r_ fm2_ ABSK bedrock-api-key- ops_eyJ ZXlK",
    "[A-Za-z0-9]{28}": (
        "CLOJARS_ EZAK EZTK api_org_ ico- pnu_ rdme_ ATBB EAAM EAAC nfp_ sbp_ NRAK- cmVmd jina_"
        " figd_ phc_ phx_ esecret_ apify_api_"
    ),
    "[A-Za-z0-9-]{14}": "sm_aat_ sm_pat_ sm_sat_ NRII- NRIQ- NRJS- FLWSECK- FLWSECK_TEST-",
    "[A-Fa-f0-9]{32}": (
        "doo_v1_ dor_v1_ pul- rubygems_ xkeysib- xsmtpsib- sntryu_ shippo_live_ shippo_test_ sgp_"
        " p8e- shpca_ shppa_ shpss_ shptka_ s-s4t2ud- s-s4t2af- SK"
    ),
}
_PREFIXES = "|".join(f"(?:{'|'.join(names.split())}){of}" for of, names in _VENDORS.items())
# A name of words has no such stretch.
_NOT_WORDS = (
    r"(?=(?:[A-Za-z0-9]{1,64}[_-]){0,8}?(?:(?=[A-Za-z]{0,11}[0-9])[A-Za-z0-9]{12}|[A-Za-z0-9]{24}))"
)

TOKEN_RULES = (
    secret_rule(
        "private-key",
        "private key",
        r"(?s)-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
        r"(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    secret_rule(
        "private-key",
        "private-lines:|static key",
        # PuTTY's and OpenVPN's: so many lines of letters behind the heading.
        r"((?i:private-lines: ?[0-9]{1,3}|-----BEGIN OpenVPN Static key V1-----))"
        r"(?:\r?\n[^\n]{0,80}?[A-Za-z0-9+/=]{32,80}){1,60}",
    ),
    secret_rule(
        "token",
        "akia|asia|aroa|aida|ltai|akid|aklt|aq",
        WORD + r"(?:(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}|LTAI[A-Za-z0-9]{12,26}"
        r"|AKID[A-Za-z0-9]{16,40}|AQ[A-Za-z0-9+/]{34,38}==|AKLT[A-Za-z0-9]{20,60})(?![A-Za-z0-9])"
        # Right behind it, as in a table or behind a short option, stands its secret.
        r"(?:[\"']?[ \t]?(?:[,;:|]|[ \t]-[a-z][ =])[ \t]?[\"']?"
        r"(?=[A-Za-z+/]{0,64}[0-9])[A-Za-z0-9/+]{30,64}={0,2}(?![A-Za-z0-9/+]))?",
        gate="akia|asia|aroa|aida|ltai|akid|aklt|aq[a-z0-9+/]{34,38}==",
    ),
    secret_rule(
        "token",
        "hf_|ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-|gldt-|npm_|pypi-",
        WORD + r"(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
        r"|gl(?:pat|dt)-[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,})",
    ),
    secret_rule(
        "token",
        "xox|xapp-|sk-|aiza|eyj|ya29.",
        WORD
        + r"(?:xox[abeoprs]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{16,}|sk-"
        + _NOT_WORDS
        + r"[A-Za-z0-9_-]{20,}"
        r"|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}"
        r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)",
    ),
    secret_rule(
        "token",
        "k_live_|k_test_|nvapi-|r8_|wandb_v1_|tkb_|tskey-|dop_v1_|hvs.|hvb.|hvr.",
        WORD + r"(?:[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|nvapi-[A-Za-z0-9_-]{20,}"
        r"|r8_[A-Za-z0-9]{30,}|(?:wandb_v1|tkb)_[A-Za-z0-9_-]{30,}|tskey-[A-Za-z0-9-]{16,}"
        r"|dop_v1_[a-f0-9]{32,}|hv[sbr]\.[A-Za-z0-9_-]{20,})",
    ),
    secret_rule(
        "token",
        "gsk_|glsa_|glc_|ntn_|lin_api_|shpat_|dckr_pat_|sntrys_|rpa_|xai-|pplx-|pmak-|gocspx-"
        "|age-secret-key-1|/t/tk-|q~|sec",
        WORD + r"(?:(?:gsk|glsa|glc|ntn|lin_api|shpat|dckr_pat|sntrys|rpa)_[A-Za-z0-9_-]{20,}"
        r"|(?:xai|pplx|PMAK|GOCSPX)-[A-Za-z0-9_-]{20,}|AGE-SECRET-KEY-1[A-Z0-9]{40,})"
        r"|(?<=/t/)tk-[A-Za-z0-9-]{16,}"
        r"|(?<![\w~.-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}|(?<!\w)SEC[0-9a-f]{64}",
        gate="gsk_|glsa_|glc_|ntn_|lin_api_|shpat_|dckr_pat_|sntrys_|rpa_|xai-|pplx-|pmak-|gocspx-"
        "|age-secret-key-1|/t/tk-|[0-9]q~[A-Za-z0-9_~.-]{16}|sec[0-9a-f]{32}",
    ),
    secret_rule(
        "hash",
        "$",
        r"(?<![\w$])\$(?:apr1|2[abxy]|argon2id?|scrypt|[156y])\$[A-Za-z0-9./+=,$]{20,256}",
        gate=r"\$(?:apr1|2[abxy]|argon2id?|scrypt|[156y])\$",
    ),
    secret_rule(
        "token",
        "sg.|dapi|:aa|secret_|akcp|key-|.",
        WORD + r"(?:SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{20,}|dapi[0-9a-f]{32}"
        r"|[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}|secret_[A-Za-z0-9]{40,}"
        r"|AKCp[A-Za-z0-9]{40,}|key-[0-9a-f]{32}|[0-9a-f]{32}\.[A-Za-z0-9]{16}(?![A-Za-z0-9]))",
        gate=r"akcp[0-9a-z]{8}|key-[0-9a-f]{16}|[0-9a-f]{16}\.[0-9a-z]{16}|sg\.[A-Za-z0-9_-]{16}|dapi[0-9a-f]{8}|[0-9]{8}:aa[A-Za-z0-9_-]{8}|secret_",
    ),
    secret_rule(
        "webhook",
        "hooks.slack.com/|/api/webhooks/|/open-apis/bot/|/webhook/send?|telegram.org/|/webhookb2/",
        r"((?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks"
        r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot(?:/v2)?/hook)/"
        r"|qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=|api\.telegram\.org/bot"
        r"|webhook\.office\.com/webhookb2/)"
        r"[A-Za-z0-9/:@_-]+",
    ),
    secret_rule(
        "webhook",
        "ftqq.com/|day.app/|://|/t/|chanify.net/|ifttt.com/|zapier.com/|hc-ping.com/|pushkey=|sendkey="
        "|cloudsmith.io/|packagecloud.io/",
        # Services whose address is the key: of messages to a phone, of packages.
        r"((?:sc(?:tapi)?\.ftqq\.com|api\.day\.app|api\.chanify\.net/v1/sender"
        r"|maker\.ifttt\.com/trigger/[\w-]{1,64}(?:/json)?/with/key|hooks\.zapier\.com/hooks/catch"
        r"|hc-ping\.com|dl\.cloudsmith\.io|packagecloud\.io)/)(?!public/)[A-Za-z0-9_-]{16,256}"
        r"|(\b(?:discord|slack|tgram|telegram|bark|barks|pover|pbul|schan|serverchan|pushdeer|ifttt"
        r"|dingtalk|feishu|lark|wecombot|wxpusher|msteams|gotifys?|ntfys?|mmosts?|rocket)://)"
        r"(?=[^\s'\"]{0,128}[0-9])(?!<redacted)[A-Za-z0-9_:/@.-]{16,512}"
        r"|(/t/)(?:tk|ac)-(?=[0-9a-f-]{0,64}[0-9])[A-Za-z0-9-]{16,128}"
        r"|(\b(?:pushkey|sendkey)=)(?!<redacted)[A-Za-z0-9_-]{16,256}",
        gate=r"ftqq\.com/|api\.day\.app/|chanify\.net/|ifttt\.com/|zapier\.com/|hc-ping\.com/"
        r"|/t/(?:tk|ac)-|pushkey=|sendkey=|cloudsmith\.io/|packagecloud\.io/"
        r"|(?:discord|slack|tgram|telegram|barks?|pover|pbul|schan|serverchan|pushdeer|ifttt|dingtalk"
        r"|feishu|lark|wecombot|wxpusher|msteams|gotifys?|ntfys?|mmosts?|rocket)://",
    ),
    secret_rule(
        "token",
        "username",
        # Kaggle's: a key that only its neighbour tells from a cache's.
        r"(\"username\":\s{0,4}\"[^\"\n]{1,64}\",\s{0,8}\"key\":\s{0,4}\")[0-9a-f]{32,64}(?=\")",
        gate='"username":[^:]*"key":',
    ),
    secret_rule(
        "token",
        "s.",
        # Vault's before its version 1.10.
        r"(?<![\w./-])s\.(?=[a-z0-9]{0,24}[A-Z])(?=[A-Z0-9]{0,24}[a-z])(?=[A-Za-z]{0,24}[0-9])"
        r"[A-Za-z0-9]{24}(?![\w.(/-])",
        gate=r"\bs\.[a-z0-9]{24}",
    ),
    secret_rule(
        "signature",
        "sig=|sign=|signature=",
        r"(?i)((?:[?&](?:[a-z]{1,4}-){0,3}(?:sig|sign|signature)|\bsignature)=)"
        r"[A-Za-z0-9%+/_-]{16,4096}={0,2}",
        gate="(?:[?&-](?:sig|sign)|signature)=",
    ),
    secret_rule(
        "token",
        "?key=|&key=|?code=|&code=|?auth=|&auth=",
        rf"([?&](?:key|code|auth)=){RANDOM}",
    ),
    secret_rule(
        "token",
        "|".join(" ".join(_VENDORS.values()).lower().split()),
        rf"{WORD}(?:{_PREFIXES})[A-Za-z0-9_=+/-]{{0,4096}}(?:\.[a-z0-9]{{9}})?",
        gate=_PREFIXES,
    ),
    secret_rule(
        "token",
        "dp.|dt0c01.|sha256~|.atlasv1.|v1.0-|sl.|bce-v3/|ms-|fw_|ak-|as-|pa-|pat",
        WORD + r"(?:dp\.(?:pt|st|sa|ct|scim|audit)\.[A-Za-z0-9]{40,}|dt0c01\.[A-Za-z0-9.]{60,}"
        r"|sha256~[A-Za-z0-9_-]{43}|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"
        r"|v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}|sl\.[A-Za-z0-9_=-]{100,}"
        r"|bce-v3/ALTAK-[A-Za-z0-9]{16,}/[a-f0-9]{32,}|ms-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"
        r"|fw_(?=[a-z0-9]{0,64}[A-Z])[A-Za-z0-9]{22,}|a[ks]-(?=[a-z0-9]{0,64}[A-Z])[A-Za-z0-9]{22}"
        r"|pa-(?=[a-z0-9_-]{0,64}[A-Z])[A-Za-z0-9_-]{43}|pat[A-Za-z0-9]{14}\.[a-f0-9]{64})"
        r"(?![A-Za-z0-9])",
        gate=r"dp\.[a-z]{2,5}\.[a-z0-9]{20}|dt0c01\.|sha256~|\.atlasv1\.|v1\.0-[a-f0-9]{24}-"
        r"|sl\.[a-z0-9_=-]{60}|bce-v3/|ms-[a-f0-9]{8}-[a-f0-9]{4}-|fw_[a-z0-9]{22}"
        r"|a[ks]-[a-z0-9]{22}|pa-[a-z0-9_-]{43}|\.[a-f0-9]{64}",
    ),
    secret_rule(
        "token",
        ".",
        # Discord's: an account, a time and a sum, each with figures.
        r"(?<![A-Za-z0-9_.-])(?=[A-Za-z_-]{0,26}[0-9])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}"
        r"\.(?=[A-Za-z_-]{0,44}[0-9])[A-Za-z0-9_-]{27,45}(?![A-Za-z0-9_.-])",
        gate=r"\.[a-z0-9_-]{6}\.[a-z0-9_-]{27}",
    ),
    secret_rule(
        "token",
        "_|-",
        # Of a vendor that nobody knows: a short name, then letters of both cases among figures.
        r"(?<![A-Za-z0-9_./-])(?:[a-z]{2,10}[_-]){1,3}(?=[a-z0-9]{0,64}[A-Z])(?=[A-Z0-9]{0,64}[a-z])"
        r"(?=(?:[A-Za-z]{1,16}[0-9]{1,4}){3})[A-Za-z0-9]{28,256}(?![A-Za-z0-9_.-])",
        gate=r"[_-][a-z0-9]{28}",
    ),
    secret_rule(
        "secret",
        ":",
        # The key's id and its secret, as s3fs and many settings write them.
        r"(?<![A-Za-z0-9+/=])(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{16,40}:"
        r"(?=[A-Z0-9+/]{0,64}[a-z])(?=[a-z0-9+/]{0,64}[A-Z])(?=[A-Za-z+/]{0,64}[0-9])"
        r"[A-Za-z0-9+/]{30,64}={0,2}(?![A-Za-z0-9+/:])",
        gate=":[a-z0-9+/]{30}",
        closer="[a-z0-9]{16}:[a-z0-9+/]{30}",
    ),
)
