"""Secrets known by their own shape, wherever they stand: keys, tokens of vendors, webhooks."""

from __future__ import annotations

from kb.text.secret_rule import RANDOM, WORD, secret_rule

TOKEN_RULES = (
    secret_rule(
        "private-key",
        "private key",
        r"(?s)-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
        r"(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    secret_rule(
        "token",
        "akia|asia|aroa|aida|ltai|akid|aklt",
        WORD + r"(?:(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}|LTAI[A-Za-z0-9]{12,26}"
        r"|AKID[A-Za-z0-9]{16,40}|AKLT[A-Za-z0-9]{20,60})(?![A-Za-z0-9])"
        # Right behind it, as in a table or behind a short option, stands its secret.
        r"(?:[\"']?[ \t]?(?:[,;:|]|[ \t]-[a-z][ =])[ \t]?[\"']?"
        r"(?=[A-Za-z+/]{0,64}[0-9])[A-Za-z0-9/+]{30,64}={0,2}(?![A-Za-z0-9/+]))?",
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
        WORD + r"(?:xox[abeoprs]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{16,}|sk-[A-Za-z0-9_-]{20,}"
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
)
