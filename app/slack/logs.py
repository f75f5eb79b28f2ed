"""The logger handed to Slack's libraries: no token passes it, in messages or in tracebacks."""

from __future__ import annotations

import logging

from kb.logs.redact import redact

NAME = "timeout_kb.slack"
MAX_CHARS = 8000  # of a record: bolt prints whole bodies of requests it refuses


class HideTokens(logging.Filter):
    """Redacts what a record would print, its traceback included."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record in place; every record passes."""
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{logging.Formatter().formatException(record.exc_info)}"
            record.exc_info = None
        record.msg, record.args = redact(text[:MAX_CHARS])[0], ()
        return True


def slack_logger(level: str) -> logging.Logger:
    """The one logger of slack-bolt, slack-sdk and their connections.

    Debug output of the SDK holds whole messages: it is never on, whatever `level` says.
    """
    logger = logging.getLogger(NAME)
    if not any(isinstance(one, HideTokens) for one in logger.filters):
        logger.addFilter(HideTokens())
    logger.setLevel(max(logging.INFO, logging.getLevelName(level.upper())))
    return logger
