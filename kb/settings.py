"""Settings: the environment (``TIMEOUT_KB_*``), read once and checked at start."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kb.errors import SettingsError

PREFIX = "TIMEOUT_KB_"
MIB = 1024 * 1024
QDRANT = ("qdrant://", "qdrants://")  # the second one over TLS
BUCKET = "s3://"  # how the address of a bucket begins


def default_home() -> Path:
    """The platform's user data folder for this program."""
    import platformdirs

    return Path(platformdirs.user_data_dir("timeout-kb", appauthor=False))


def shipped_data() -> Path:
    """The `data/` folder: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    inside = package / "data"
    return inside if inside.is_dir() else package.parent / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting, one field each; the environment variable is the prefix and the upper name.

    Sizes are bytes, times seconds. README lists them all; a test compares the two.
    """

    home: Path = field(default_factory=default_home)  # state: store, index, caches
    data: Path = field(default_factory=shipped_data)  # knowledge files
    store: str = field(default="sqlite", repr=False)  # or a PostgreSQL address, with its password
    index: str = field(default="embedded", repr=False)  # or a Qdrant address, with its key
    index_key: str = field(default="", repr=False)  # of the Qdrant server, where it wants one
    generations: str = ""  # folder or s3://… in which servers of one database share the index
    site: Path | None = None  # folder of the team's own knowledge, beside that of `data`
    host: str = "127.0.0.1"
    port: int = 8000
    web_port: int = 8501
    lang: str = ""  # answer language; empty: that of the input
    model: str = ""  # sentence-transformers model name or folder; empty: the embedded one
    model_query_prefix: str = ""
    model_passage_prefix: str = ""
    model_batch_size: int = 32
    model_device: str = "cpu"
    threads: int = 1  # compute threads of this process
    top: int = 3  # causes shown
    max_body: int = 64 * MIB  # JSON and multipart bodies; raw bodies stream without this limit
    max_line: int = 64 * 1024  # longer lines are cut, not refused
    mcp_roots: str = ""  # folders whose files MCP tools may read, `:` between; empty: none
    public_url: str = ""  # address of the page that links name; empty: where this one serves it
    login_header: str = ""  # in which a proxy names who is signed in at the page; empty: nobody is
    chat_days: int = 30  # a conversation is kept this long after its last message
    kept_days: int = 90  # a kept diagnosis stays this long; 0: for ever
    slack_bot_token: str = field(default="", repr=False)  # several workspaces: comma between
    slack_app_token: str = field(default="", repr=False)  # Socket Mode
    slack_signing_secret: str = field(default="", repr=False)  # HTTP mode
    slack_channel: str = ""  # id of the one the page posts answers into; empty: it offers none
    slack_mode: str = "socket"
    slack_api_url: str = "https://slack.com/api/"
    slack_files_host: str = "files.slack.com"  # files come from nowhere else
    slack_max_file: int = 20 * MIB
    llm_base_url: str = ""  # of a language model that reads along; empty: none does
    llm_model: str = ""
    llm_api_key: str = field(default="", repr=False)
    llm_timeout: int = 30  # seconds
    llm_trust: str = ""  # from 0 to 1; empty: what was measured of the model
    llm_per_minute: int = 10  # questions, of all people together
    llm_per_day: int = 500
    log_level: str = "warning"

    @property
    def shared_store(self) -> bool:
        """Whether the knowledge base is kept by a database server, for several machines."""
        return self.store != "sqlite"

    @property
    def shared_index(self) -> bool:
        """Whether the search index is kept by a Qdrant server."""
        return self.index != "embedded"


_INTEGERS = {
    "port": (0, 65535),
    "web_port": (0, 65535),
    "model_batch_size": (1, 4096),
    "threads": (1, 256),
    "top": (1, 19),
    "max_body": (1024, 1 << 40),
    "max_line": (256, 16 * MIB),
    "chat_days": (1, 3650),
    "kept_days": (0, 36_500),
    "slack_max_file": (1024, 1 << 30),
    "llm_timeout": (1, 600),
    "llm_per_minute": (1, 10_000),
    "llm_per_day": (1, 1_000_000),
}
_CHOICES = {
    "lang": ("", "zh", "en"),
    "slack_mode": ("socket", "http"),
    "log_level": ("debug", "info", "warning", "error", "critical"),
}


def _is_share(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def is_address(text: str) -> bool:
    """Whether it is the place of a PostgreSQL database: an address or ``key=value``, as libpq's."""
    return text.startswith(("postgresql://", "postgres://")) or "=" in text


def _convert(name: str, text: str) -> object:
    key = PREFIX + name.upper()
    if name in _INTEGERS:
        low, high = _INTEGERS[name]
        try:
            number = int(text)
        except ValueError:
            raise SettingsError(
                f"{key}={text!r} is not a whole number",
                todo=f"set {key} to a number from {low} to {high}, or unset it",
                reason="setting_number",
                values={"key": key, "text": text, "low": str(low), "high": str(high)},
            ) from None
        if not low <= number <= high:
            raise SettingsError(
                f"{key}={text!r} is out of range",
                todo=f"set {key} to a number from {low} to {high}, or unset it",
                reason="setting_range",
                values={"key": key, "text": text, "low": str(low), "high": str(high)},
            )
        return number
    if name in _CHOICES and text not in _CHOICES[name]:
        allowed = ", ".join(choice or "(empty)" for choice in _CHOICES[name])
        raise SettingsError(
            f"{key}={text!r} is not known",
            todo=f"use one of: {allowed}",
            reason="setting_choice",
            values={"key": key, "text": text, "allowed": allowed},
        )
    if name == "store" and text != "sqlite" and not is_address(text):
        raise SettingsError(  # the value may hold a password
            f"{key} is neither sqlite nor the address of a PostgreSQL database",
            todo="write postgresql://user@host/database, or unset it",
            reason="setting_store",
            values={"key": key},
        )
    if name == "index" and text != "embedded" and not text.startswith(QDRANT):
        raise SettingsError(  # the value may hold a key
            f"{key} is neither embedded nor the address of a Qdrant server",
            todo="write qdrant://host:6333/collection, or unset it",
            reason="setting_index",
            values={"key": key},
        )
    if name == "llm_trust" and not _is_share(text):
        raise SettingsError(
            f"{key}={text!r} is no share",
            todo=f"set {key} to a number from 0 to 1, or unset it",
            reason="setting_range",
            values={"key": key, "text": text, "low": "0", "high": "1"},
        )
    if name == "generations" and not text.startswith(BUCKET):
        return str(Path(text).expanduser())
    if name in ("home", "data", "site"):
        return Path(text).expanduser()
    return text


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from `environ` (default: the process environment).

    Raises:
        SettingsError: a value is wrong, or a ``TIMEOUT_KB_*`` name is not known or of a removed
            setting; key and value are named, with the nearest known name.
    """
    environ = os.environ if environ is None else environ
    known = {PREFIX + name.upper(): name for name in Settings.__dataclass_fields__}
    values: dict[str, object] = {}
    for key in sorted(environ):
        if not key.startswith(PREFIX):
            continue
        name = known.get(key)
        if name is None:
            import difflib

            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "see the settings in the README"
            raise SettingsError(
                f"{key} is not a setting",
                todo=hint,
                reason="no_setting_near" if near else "no_setting",
                values={"key": key, "near": "".join(near)},
            )
        if environ[key] or name == "lang":
            values[name] = _convert(name, environ[key])
    settings = Settings(**values)  # type: ignore[arg-type]
    if settings.generations and not settings.shared_store:
        key, missing = f"{PREFIX}GENERATIONS", f"{PREFIX}STORE"
        raise SettingsError(
            f"{key} is set and {missing} is not",
            todo=f"set both, or unset {key}",
            reason="setting_both",
            values={"key": key, "near": missing},
        )
    if settings.generations is not None and settings.shared_index:
        raise SettingsError(
            f"{PREFIX}GENERATIONS and {PREFIX}INDEX are both set, and servers share one index",
            todo=f"unset {PREFIX}GENERATIONS",
        )
    _check_model(settings)
    return settings


def _check_model(settings: Settings) -> None:
    """Whether the language model's settings belong together."""
    url, model = settings.llm_base_url, settings.llm_model
    if url and not url.startswith(("http://", "https://")):
        raise SettingsError(
            f"{PREFIX}LLM_BASE_URL={url!r} is no address",
            todo="give one that begins with http:// or https:// and ends before /chat/completions",
            reason="setting_address",
            values={"key": f"{PREFIX}LLM_BASE_URL", "text": url},
        )
    if bool(url) != bool(model):
        missing = f"{PREFIX}LLM_MODEL" if url else f"{PREFIX}LLM_BASE_URL"
        other = f"{PREFIX}LLM_BASE_URL" if url else f"{PREFIX}LLM_MODEL"
        raise SettingsError(
            f"{other} is set and {missing} is not",
            todo=f"set both, or unset {other}",
            reason="setting_both",
            values={"key": other, "near": missing},
        )
