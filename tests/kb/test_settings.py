"""Settings: the environment is read once, and a wrong value is named with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.errors import SettingsError
from kb.settings import PREFIX, Settings, load_settings


def test_defaults_without_environment() -> None:
    """Other variables do not matter; the shipped data folder is found."""
    settings = load_settings({"HOME": "/root", "NCCL_DEBUG": "INFO"})
    assert settings == Settings()
    assert (settings.data / "causes.yaml").is_file()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("HOME", "/tmp/x", Path("/tmp/x")),
        ("PORT", "0", 0),
        ("LANG", "zh", "zh"),
        ("LANG", "", ""),
        ("MODEL", "BAAI/bge-m3", "BAAI/bge-m3"),
        ("PORT", "", 8000),
    ],
    ids=["path", "number", "choice", "empty-choice", "text", "empty-is-unset"],
)
def test_values_are_converted(name: str, text: str, value: object) -> None:
    """Each kind of value arrives as its type."""
    assert getattr(load_settings({PREFIX + name: text}), name.lower()) == value


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("PORT", "http", "TIMEOUT_KB_PORT='http' is not a whole number"),
        ("PORT", "70000", "out of range"),
        ("LANG", "fr", "TIMEOUT_KB_LANG='fr'"),
        ("PROT", "1", "did you mean TIMEOUT_KB_PORT"),
    ],
    ids=["no-number", "range", "choice", "misspelt"],
)
def test_wrong_values_name_key_and_value(name: str, text: str, says: str) -> None:
    """The message names key and value, and what to do."""
    with pytest.raises(SettingsError, match=says) as caught:
        load_settings({PREFIX + name: text})
    assert caught.value.todo
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"LLM_BASE_URL": "example.org/v1", "LLM_MODEL": "m"}, "LLM_BASE_URL"),
        ({"LLM_BASE_URL": "file:///etc/passwd", "LLM_MODEL": "m"}, "LLM_BASE_URL"),
        ({"LLM_BASE_URL": "http://127.0.0.1/v1"}, "LLM_MODEL"),
        ({"LLM_MODEL": "m"}, "LLM_BASE_URL"),
        ({"GENERATIONS": "/shared"}, "TIMEOUT_KB_STORE"),
        ({"LLM_TRUST": "2"}, "LLM_TRUST"),
        ({"LLM_TRUST": "nan"}, "LLM_TRUST"),
        ({"LLM_TRUST": "much"}, "LLM_TRUST"),
    ],
)
def test_settings_belong_together(values: dict[str, str], names: str) -> None:
    """An address and a model, a trust from 0 to 1, a folder of indexes and a database server.

    The key is never shown.
    """
    environ = {f"TIMEOUT_KB_{name}": value for name, value in values.items()}
    with pytest.raises(SettingsError, match=names) as refused:
        load_settings(environ | {"TIMEOUT_KB_LLM_API_KEY": "geheim"})
    assert refused.value.todo
    assert "geheim" not in str(refused.value)
