"""What belongs to a person: telephone and identity numbers, cards, e-mail addresses."""

from __future__ import annotations

from kb.text.secret_rule import secret_rule

PERSONAL_RULES = (
    secret_rule(
        "phone",
        "电话|手机|微信|联系|phone|wechat|call me|+86",
        r"(?i)((?:电话|手机|微信|联系|phone|wechat|call me|\+86)[^\n0-9]{0,16})"
        r"(?<![0-9])1[3-9][0-9][ -]?[0-9]{4}[ -]?[0-9]{4}(?![0-9])",
    ),
    secret_rule(
        "identity-number",
        "身份证|id card",
        r"(?i)((?:身份证|id card)[^\n0-9]{0,16})[0-9]{17}[0-9X](?![0-9])",
    ),
    secret_rule(
        "email",
        "@",
        r"(?<![A-Za-z0-9._%+-])(?!git@)[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}"
        r"[A-Za-z]{2,24}(?![A-Za-z0-9-])",
    ),
)
