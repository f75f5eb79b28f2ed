"""Setting warnings for machines: SARIF 2.1.0 and GitHub's annotations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from app.render import present
from app.render.escape import plain, safe_url
from kb.knowledge.labels import Words
from kb.settings_check.lint import HARMLESS
from kb.text.redact import redact
from kb.types.answer import SettingWarning

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
STDIN_URI = "stdin"  # of what was piped in: SARIF and GitHub want a name


def level(warning: SettingWarning) -> str:
    """``warning``, or ``note`` where the setting does no harm."""
    return "note" if warning.verdict in HARMLESS else "warning"


def render_sarif(warnings: Sequence[SettingWarning], words: Words, version: str) -> str:
    """A SARIF log of one run; each kind of fault is a rule.

    Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
    """
    kinds = sorted({warning.verdict for warning in warnings})
    rules = [
        {"id": kind, "shortDescription": {"text": words.term("warning", kind)}} for kind in kinds
    ]
    driver = {"name": "timeout-kb", "semanticVersion": version, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(warning, kinds, words) for warning in warnings],
    }
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, ensure_ascii=False, indent=2) + "\n"


def _sarif_result(warning: SettingWarning, kinds: Sequence[str], words: Words) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": file_uri(warning.file)}}
    if warning.line:
        place["region"] = {"startLine": warning.line}
    # What stays the same when lines move: GitHub tells new alerts from known ones by it.
    same = f"{warning.file}\0{warning.setting}\0{warning.verdict}\0{warning.source}"
    return {
        "ruleId": warning.verdict,
        "ruleIndex": kinds.index(warning.verdict),
        "level": level(warning),
        "message": {"text": _message(warning, words)},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"setting/v1": hashlib.sha256(same.encode()).hexdigest()[:32]},
    }


def file_uri(file: str) -> str:
    """A path as SARIF names it: relative where it is, percent-encoded."""
    if not file:
        return STDIN_URI
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def render_annotations(warnings: Sequence[SettingWarning], words: Words) -> str:
    """A workflow command of GitHub Actions a warning; what is in a script makes none of its own.

    Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    lines = []
    for warning in warnings:
        command = "notice" if level(warning) == "note" else "warning"
        values = {
            "file": warning.file,
            "line": str(warning.line or ""),
            "title": redact(plain(warning.setting))[0],
        }
        properties = ",".join(
            f"{name}={_property(value)}" for name, value in values.items() if value
        )
        lines.append(f"::{command} {properties}::{_data(_message(warning, words))}\n")
    return "".join(lines)


def _message(warning: SettingWarning, words: Words) -> str:
    url = safe_url(warning.source)
    text = redact(f"{plain(warning.setting)}: {plain(present.warning_text(warning, words))}")[0]
    return f"{text} {url}" if url else text


def _data(text: str) -> str:
    """What stands behind the second ``::``, as @actions/core escapes it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A property's value, in which ``:`` and ``,`` end something."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
