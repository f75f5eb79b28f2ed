"""Lines of a program's log: one JSON object each, without secrets and without values of variables.

structlog's own default shows tracebacks with all local variables, a pasted log among them.
"""

from __future__ import annotations

import sys

import structlog

from kb.text.redact import redact


def without_secrets(
    _logger: object, _method: str, event: structlog.types.EventDict
) -> structlog.types.EventDict:
    """Redact what a line says; a message of an error may quote the log it failed on."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = redact(value)[0]
    return event


PROCESSORS: tuple[structlog.types.Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,  # plain: it names code, never the values of variables
    without_secrets,
)


def logger() -> structlog.stdlib.BoundLogger:
    """The program's log: on stderr, unless the process has a log of its own already."""
    if not structlog.is_configured():
        structlog.configure(
            processors=[*PROCESSORS, structlog.processors.JSONRenderer(ensure_ascii=False)],
            logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        )
    found: structlog.stdlib.BoundLogger = structlog.get_logger()
    return found
