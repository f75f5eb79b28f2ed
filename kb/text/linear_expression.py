"""One expression of RE2: its time is linear in the text, whatever the expression."""

from __future__ import annotations

import re
from functools import cache
from typing import cast

from kb.errors import DataError


@cache
def linear_expression(text: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """The compiled expression, used as one of `re`; ``^`` and ``$`` match at lines.

    Raises:
        DataError: it is none that RE2 takes, or too long.
    """
    import re2

    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    try:
        return cast("re.Pattern[str]", re2.compile(f"(?m){text}", options))
    except re2.error as error:
        why = b"".join(part for part in error.args if isinstance(part, bytes)).decode()
        raise DataError(
            f"{text!r:.200} is no expression of RE2: {why:.200}",
            todo="write it shorter, without look-around and back-references",
        ) from error
