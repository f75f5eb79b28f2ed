"""What belongs to a person: telephone and identity numbers, cards, e-mail addresses.

A number alone is nobody's: of telephones a word, a ``+`` or brackets tell, of cards and identity
numbers their own check digits, beside a word or a form that no count has.
"""

from __future__ import annotations

from kb.text.secret_rule import QUOTE, secret_rule

# https://www.itu.int/rec/T-REC-E.164 and its list of assigned country codes
_COUNTRY = (
    r"(?:1|7|2(?:0|7|[1-689][0-9])|3(?:[0-469]|[578][0-9])|4(?:[013-9]|2[0-9])|5(?:[1-8]|[09][0-9])"
    r"|6(?:[0-6]|[789][0-9])|8(?:[1246]|[057][0-9])|9(?:[0-58]|[679][0-9]))"
)
_PHONE = (
    r"(?:电话|手机|微信|联系|号码|座机|传真|拨打|致电|打给|短信|值班|值守|前台|总机|热线|客服|报修|呼叫|phone|wechat|whatsapp|mobile|\btel\b"
    r"|\bcell\b|\bsms\b|\bfax\b|\bon-?call\b|hotline|(?:call|text|reach) (?:me|us|him|her)\b)"
)
_CARD = (
    r"(?:卡号|打到|打款|打钱|转账|汇款|报销|开户|户名|招行|工行|建行|农行|中行|交行|银行卡|工资卡|信用卡|储蓄卡|借记卡|银联|账号|帐号|账户|收款|card|visa|amex|unionpay"
    r"|\bacct|account|\bpan\b)"
)
_IDENTITY = r"(?:身份证|身分證|证件号|id[ _-]?card|id[ _-]?number|citizen|national[ _-]id)"
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)  # GB 11643-1999


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def is_card(text: str) -> bool:
    """Whether the 13 to 19 digits in `text` are a card's: the last one is Luhn's check digit.

    Fewer than 15 in one piece are a count of bytes more often than an old card.
    https://patents.google.com/patent/US2950048A
    """
    numbers = [int(digit) for digit in reversed(_digits(text))]
    doubled = (n * 2 - 9 if n > 4 else n * 2 for n in numbers[1::2])
    least = 15 if text.isdigit() else 13
    return least <= len(numbers) <= 19 and (sum(numbers[::2]) + sum(doubled)) % 10 == 0


def is_identity_number(text: str) -> bool:
    """Whether the 18 characters are a Chinese identity number: the last one is right."""
    total = sum(int(digit) * weight for digit, weight in zip(text, _WEIGHTS, strict=False))
    return "10X98765432"[total % 11] == text[-1].upper()


def is_iban(text: str) -> bool:
    """Whether an account number's remainder by 97 is 1, as ISO 13616 wants it."""
    letters = text.replace(" ", "")
    return int("".join(str(int(letter, 36)) for letter in letters[4:] + letters[:4])) % 97 == 1


def is_phone(text: str) -> bool:
    """Whether the digits in `text` may be a telephone's: eleven in North America and Russia."""
    digits = _digits(text)
    return len(digits) == 11 if digits[0] in "17" else 9 <= len(digits) <= 15


PERSONAL_RULES = (
    secret_rule(
        "phone",
        "+",
        # With a country's code and in groups, as nobody writes a count.
        rf"(?<![\w.+)-])\+(?!20[0-9]{{2}}-[01]){_COUNTRY}[ -]{{0,2}}(?:\([0-9]{{1,4}}\)[ -]?)?"
        r"[0-9]{1,5}(?:[ -][0-9]{2,5}){1,4}(?![\w:-]|\.[0-9])"
        rf"|((?<![\w.])['\"])\+{_COUNTRY}[0-9]{{7,12}}(?=['\"])",
        gate=r"\+[1-9][0-9]{0,2}[ -]*[(0-9][0-9)]*[ -]+[0-9]{2}|['\"]\+[1-9][0-9]{7}",
        accepts=is_phone,
    ),
    secret_rule(
        "phone",
        "电话|手机|微信|联系|号码|座机|传真|拨打|致电|打给|短信|值班|值守|前台|总机|热线|客服|报修|呼叫|phone|wechat|whatsapp|mobile|tel|cell"
        "|sms|fax|hotline|call|text|reach|86|-",
        rf"(?i)((?:{_PHONE}|\+86|\b0086)[^\n0-9+]{{0,16}}(?:(?:\+|\b00)86[ -]?)?)(?<![0-9])"
        r"(?:1[3-9][0-9][ -]?[0-9]{4}[ -]?[0-9]{4}|0[1-9][0-9]{1,2}[ -][0-9]{7,8}(?:-[0-9]{1,4})?"
        r"|[48]00[ -][0-9]{3,4}[ -][0-9]{3,4}|[2-9][0-9]{2}[ .-][2-9][0-9]{2}[ .-][0-9]{4})"
        r"(?![0-9])"
        rf"|(?i:({_PHONE}[^\n0-9+]{{0,16}}))\+{_COUNTRY}[0-9]{{7,12}}(?![0-9])"
        r"|(?<![\w)])\([2-9][0-9]{2}\) ?[2-9][0-9]{2}-[0-9]{4}(?![0-9])"
        r"|(?<![\w.+-])(?<!_[mnu]s[ =:])(?<!_(?:id|kb|mb|ns|us)[ =:])(?<!bytes[ =:])"
        r"1[3-9][0-9]-[0-9]{4}-[0-9]{4}(?![\w-])"
        # A number before what is done with it; one with an area code and an extension.
        r"|(?<![\w.+-])(?:1[3-9][0-9]{9}|0[1-9][0-9]{1,2}-[0-9]{7,8})"
        r"(?=[^\n0-9]{0,12}?(?:打电话|打给|手机|微信|转 ?[0-9]{3,5}))",
        gate=rf"{_PHONE}|\+86|\b0086|\([2-9][0-9]{{2}}\) ?[2-9][0-9]{{2}}-"
        r"|\b1[3-9][0-9]-[0-9]{4}-|\b0[1-9][0-9]{1,2}-[0-9]{7}",
        closer=rf"(?:{_PHONE}|\+86|\b0086)[^\n0-9+]{{0,20}}\+?[0-9][0-9 .-]{{6}}"
        r"|\([2-9][0-9]{2}\) ?[2-9][0-9]{2}-|\b1[3-9][0-9]-[0-9]{4}-"
        r"|(?:[0-9]{11}|-[0-9]{7,8})[^\n0-9]*(?:打电话|打给|手机|微信|转)",
    ),
    secret_rule(
        "account",
        "qq|微信",
        r"(\bQQ(?:号码?|群)?[ \t]{0,2}[:：是为 ]{1,3})[1-9][0-9]{5,10}(?![\w.])"
        r"|(微信号[:：是为 ]{1,3})[A-Za-z][\w-]{5,19}(?![\w.])",
        gate=r"\bqq|微信号",
    ),
    secret_rule(
        "identity-number",
        "身份证|身分證|证件|id|citizen|护照|passport|ssn|social security",
        rf"(?i)((?:{_IDENTITY})(?:{QUOTE})?[^\n0-9]{{0,16}})(?<![0-9])(?:[0-9]{{17}}[0-9X](?![0-9])"
        r"|(?<=[^\w])[A-Z][0-9]{6}\([0-9A]\)|(?<=[^\w])[A-Z][12][0-9]{8}(?!\w))"
        r"|((?:护照|passport)[^\n0-9]{0,16}?(?<![A-Za-z0-9]))[A-Z]{1,2}[0-9]{7,8}(?!\w)"
        r"|((?:\bssn\b|social security)[^\n0-9]{0,16})[0-9]{3}-[0-9]{2}-[0-9]{4}(?![0-9-])",
        gate=rf"{_IDENTITY}|护照|passport|\bssn\b|social security",
        closer=rf"{_IDENTITY}[^\n0-9]{{0,32}}[0-9]{{6}}"
        r"|(?:护照|passport|\bssn\b|social security)[^\n0-9]{0,20}[0-9]",
    ),
    secret_rule(
        "identity-number",
        "19|20",
        # A Chinese one: the place's six digits, the date of birth, a number and the check digit.
        r"(?<![\w.-])[1-8][0-9]{5}(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
        r"[0-9]{3}[0-9Xx](?![\w.-])",
        gate=r"[1-8][0-9]{5}(?:19|20)[0-9]{2}[01][0-9][0-3][0-9]{4}[0-9x]",
        accepts=is_identity_number,
    ),
    secret_rule(
        "card",
        "卡|打到|打款|打钱|转账|汇款|报销|开户|户名|招行|工行|建行|农行|中行|交行|银联|账|帐|收款|card|visa|amex|unionpay|acct|account|pan",
        rf"(?i)((?:{_CARD})(?:{QUOTE})?[^\n0-9]{{0,24}})(?<![0-9.])[2-69][0-9]{{3}}"
        r"(?:[0-9]{9,15}|(?:[ -][0-9]{2,7}){2,5})(?![0-9]|[.-][0-9])",
        gate=_CARD,
        closer=rf"{_CARD}[^\n0-9]{{0,32}}[2-69][0-9]{{3}}[0-9 -]{{9}}",
        accepts=is_card,
    ),
    secret_rule(
        "card",
        "cvv|cvc",
        r"(?i)(\b(?:cvv2?|cvc2?)\b[^\n0-9]{0,6})[0-9]{3,4}(?![\w.])",
        gate=r"\bcv[vc]2?\b",
    ),
    secret_rule(
        "account",
        "iban",
        r"((?i:iban)[^\n0-9]{0,12}?)(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){3,7}"
        r"(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])",
        gate=r"\biban\b",
        accepts=is_iban,
    ),
    secret_rule(
        "email",
        "@",
        r"(?<![A-Za-z0-9._%+-])(?!git@)[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}"
        r"[A-Za-z]{2,24}(?![A-Za-z0-9-])",
    ),
)
