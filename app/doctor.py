"""Whether an installation is well: each check says what it saw and, where it is not, what to do."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from app.doctor_kept import check_backups, check_kept
from app.render.errors import error_text
from kb.errors import KBError, MissingExtraError
from kb.files.file_system import (
    NETWORK_FILE_SYSTEMS,
    SHARED_FILE_SYSTEMS,
    existing,
    file_system_of,
)
from kb.knowledge.labels import Words
from kb.settings import BUCKET, PREFIX, Settings

if TYPE_CHECKING:
    from packaging.requirements import Requirement
Standing = Literal["ok", "warn", "fail", "skip"]
CheckName = Literal[
    "settings",
    "versions",
    "extras",
    "home",
    "disk",
    "file_system",
    "database",
    "index",
    "kept",
    "backups",
    "data",
    "ports",
    "keys",
    "embedding",
    "language_model",
    "slack",
]

MIB = 1024 * 1024
LEAST_FREE = 200 * MIB  # the database, the index and its next generation
FREE = 1024 * MIB  # an import of some thousand pages
SHOWN_ERRORS = 5  # of the knowledge; `check-data` lists all
OTHERS = stat.S_IRWXG | stat.S_IRWXO
PROBE = "Answer with the JSON object {}."


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFinding:
    """What a check saw: `what` in a line, `todo` the next step where something is wrong."""

    check: CheckName
    standing: Standing
    what: str
    todo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctor:
    """Examines the installation that `settings` describe; nothing is built or changed."""

    settings: Settings
    words: Words

    def findings(self) -> Iterator[HealthFinding]:
        """All findings, in the order of `CHECKS`; a check that fails by itself is one as well."""
        for name, check in CHECKS.items():
            try:
                yield from check(self)
            except KBError as error:
                yield self.failure(name, error)
            except Exception as error:  # noqa: BLE001 - a health check reports whatever is wrong
                import structlog

                structlog.get_logger("app.doctor").exception("check failed", check=name)
                yield self.finding(name, "fail", "unexpected", kind=type(error).__name__)

    def finding(
        self, check: CheckName, standing: Standing, label: str, **values: object
    ) -> HealthFinding:
        """One by the labels `doctor.<label>` and, where there is one, `doctor_todo.<label>`."""
        todo = f"doctor_todo.{label}"
        return HealthFinding(
            check=check,
            standing=standing,
            what=self.words(f"doctor.{label}", **values),
            todo=self.words(todo, **values) if self.words.has(todo) else "",
        )

    def failure(self, check: CheckName, error: KBError) -> HealthFinding:
        """An expected failure as a finding."""
        text = error_text(error, self.words)
        return HealthFinding(
            check=check, standing="fail", what=text.what, todo=text.todo or error.todo
        )


# --- the program -------------------------------------------------------------------------------


def check_versions(doctor: Doctor) -> Iterator[HealthFinding]:
    """Python, SQLite, and that every package is installed in a version that fits."""
    wrong = [one for one in requirements() if not extra_of(one) and not is_installed(one)]
    for requirement in wrong:
        name = requirement.name
        yield doctor.finding(
            "versions",
            "fail",
            "package_wrong",
            name=name,
            has=installed_version(name) or "–",
            wanted=str(requirement),
        )
    if not wrong:
        yield doctor.finding(
            "versions",
            "ok",
            "versions",
            version=installed_version("timeout-kb") or "–",
            python=platform.python_version(),
            sqlite=sqlite3.sqlite_version,
        )


def check_extras(doctor: Doctor) -> Iterator[HealthFinding]:
    """Which optional parts are installed, and that those the settings need are."""
    extras = extras_installed()
    have = ", ".join(name for name, there in extras.items() if there) or "–"
    lack = ", ".join(name for name, there in extras.items() if not there) or "–"
    yield doctor.finding("extras", "ok", "extras", have=have, lack=lack)
    settings = doctor.settings
    needed = {
        "slack": bool(settings.slack_bot_token),
        "llm": bool(settings.llm_base_url),
        "models": bool(settings.model),
        "postgres": settings.shared_store,
        "qdrant": settings.shared_index,
        "s3": settings.generations.startswith(BUCKET),
    }
    for name, wanted in needed.items():
        if wanted and not extras.get(name, True):
            yield doctor.finding("extras", "fail", "extra_needed", extra=name)


def requirements() -> list[Requirement]:
    """What the installed package asks for, extras included; empty in a checkout."""
    from packaging.requirements import Requirement

    try:
        return [Requirement(line) for line in metadata.requires("timeout-kb") or ()]
    except metadata.PackageNotFoundError:
        return []


def extras_installed() -> dict[str, bool]:
    """The extras people install, and whether each is there, by name."""
    extras: dict[str, list[Requirement]] = {}
    for requirement in requirements():
        if name := extra_of(requirement):
            extras.setdefault(name, []).append(requirement)
    return {
        name: all(map(is_installed, needed))
        for name, needed in sorted(extras.items())
        if name not in ("dev", "fit", "train")
    }


def extra_of(requirement: Requirement) -> str:
    """The extra that asks for a package; empty where the program itself does."""
    name = str(requirement.marker or "").partition("extra ==")[2]
    return name.strip(" \"'")


def is_installed(requirement: Requirement) -> bool:
    """Whether a version that fits is there, or none is needed with this Python."""
    marker = requirement.marker
    if marker and not marker.evaluate({"extra": extra_of(requirement)}):
        return True
    version = installed_version(requirement.name)
    return bool(version) and requirement.specifier.contains(version, prereleases=True)


def installed_version(name: str) -> str:
    """The version of a package; empty where it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


# --- the state folder --------------------------------------------------------------------------


def check_home(doctor: Doctor) -> Iterator[HealthFinding]:
    """The state folder can be written, by its owner alone."""
    home = doctor.settings.home
    if not home.exists():
        parent = existing(home)
        able = parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
        label = "home_new" if able else "home_cannot_be_made"
        yield doctor.finding("home", "ok" if able else "fail", label, home=home, parent=parent)
    elif not home.is_dir() or not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        yield doctor.finding("home", "fail", "home_rights", home=home)
    elif home.stat().st_mode & OTHERS:
        mode = f"{stat.S_IMODE(home.stat().st_mode):o}"
        yield doctor.finding("home", "warn", "home_open", home=home, mode=mode)
    else:
        yield doctor.finding("home", "ok", "home", home=home)


def check_disk(doctor: Doctor) -> Iterator[HealthFinding]:
    """There is room for the database and the index."""
    free = shutil.disk_usage(existing(doctor.settings.home)).free
    standing: Standing = "fail" if free < LEAST_FREE else "warn" if free < FREE else "ok"
    label = "disk" if standing == "ok" else "disk_full"
    yield doctor.finding("disk", standing, label, free=free // MIB, home=doctor.settings.home)


def check_file_system(doctor: Doctor) -> Iterator[HealthFinding]:
    """The state folder lies on a disk of this machine."""
    home = existing(doctor.settings.home).resolve()
    kind = file_system_of(home)
    if kind in NETWORK_FILE_SYSTEMS:
        standing: Standing = "fail" if kind in SHARED_FILE_SYSTEMS else "warn"
        label = "network_file_system"
        yield doctor.finding("file_system", standing, label, home=home, kind=kind)
    else:
        yield doctor.finding("file_system", "ok", "file_system", kind=kind or "–")


# --- what is stored ----------------------------------------------------------------------------


def database_path(settings: Settings) -> Path:
    """The database file of a state folder."""
    from kb.store.database import DATABASE

    return settings.home / DATABASE


def check_database_file(doctor: Doctor) -> Iterator[HealthFinding]:
    """The database is whole, of this version, and can be written."""
    from kb.store import Store
    from kb.store.check import check_database

    if doctor.settings.shared_store:
        yield from _server_database(doctor)
        return
    path = database_path(doctor.settings)
    if not path.exists():
        yield doctor.finding("database", "ok", "not_built")
        return
    check_database(path)
    store = Store.open(path)
    try:
        yield doctor.finding("database", "ok", "database", path=path, entries=store.count())
    finally:
        store.close()


def _server_database(doctor: Doctor) -> Iterator[HealthFinding]:
    """The database server answers, and its tables can be read and written."""
    from kb.store import Store

    store = Store.open(doctor.settings.store)
    try:
        with store.database.write() as connection:
            connection.execute("DELETE FROM handled WHERE 1 = 0")
        label, count = "database_server", store.count()
        yield doctor.finding("database", "ok", label, path=store.name, entries=count)
    finally:
        store.close()


def check_index(doctor: Doctor) -> Iterator[HealthFinding]:
    """The search index is whole and fits the model and the database."""
    from kb.bootstrap import index_state
    from kb.store import Store

    if not doctor.settings.shared_store and not database_path(doctor.settings).exists():
        yield doctor.finding("index", "ok", "not_built")
        return
    store = Store.of(doctor.settings, keep_copy=False)
    try:
        state = index_state(doctor.settings, store)
    finally:
        store.close()
    if state is None:
        yield doctor.finding("index", "ok", "not_built")
    elif state.outdated or state.behind:
        yield doctor.finding("index", "ok", "index_behind")
    elif doctor.settings.shared_index:
        from kb.index.qdrant_connection import read_address

        place = read_address(doctor.settings.index).name
        yield doctor.finding("index", "ok", "index_server", path=place, entries=state.entries)
    else:
        yield doctor.finding("index", "ok", "index", entries=state.entries)


def check_data(doctor: Doctor) -> Iterator[HealthFinding]:
    """The knowledge and the team's own follow their schema."""
    from app.cli.check_data import data_errors

    settings = doctor.settings
    for name, folder in (("DATA", settings.data), ("SITE", settings.site)):
        if folder is not None and not folder.is_dir():
            yield doctor.finding("data", "fail", "no_data", folder=folder, key=PREFIX + name)
            return
    errors = dict.fromkeys(str(error) for error in data_errors(settings.data, settings.site))
    for error in list(errors)[:SHOWN_ERRORS]:
        yield doctor.finding("data", "fail", "data_wrong", error=error)
    if not errors:
        yield doctor.finding("data", "ok", "data", folder=settings.data)


def check_embedding(doctor: Doctor) -> Iterator[HealthFinding]:
    """The model that search uses can be loaded."""
    from kb.embed import load_embedder

    yield doctor.finding("embedding", "ok", "embedding", name=load_embedder(doctor.settings).name)


# --- who is reached, and by whom ---------------------------------------------------------------


def check_ports(doctor: Doctor) -> Iterator[HealthFinding]:
    """The ports of API and page are free, or it is ours that answers there."""
    from app.cli import web
    from app.server.address import answers_at, listen
    from kb.errors import InputError

    settings = doctor.settings
    if settings.port == settings.web_port != 0:
        yield doctor.finding("ports", "fail", "same_port", port=settings.port)
        return
    for name, port, health in (
        ("PORT", settings.port, "/healthz"),
        ("WEB_PORT", settings.web_port, web.HEALTH),
    ):
        try:
            listen(replace(settings, port=port)).close()
        except InputError:
            ours = answers_at(settings.host, port, health)
            label: str = "port_ours" if ours else "port_taken"
            standing: Standing = "ok" if ours else "fail"
            yield doctor.finding("ports", standing, label, port=port, key=PREFIX + name)
        else:
            yield doctor.finding("ports", "ok", "port_free", port=port)


def check_keys(doctor: Doctor) -> Iterator[HealthFinding]:
    """The keys can be read, by nobody else, and there are some where other machines get in."""
    from app.api.auth import check_exposure, keys_place, read_keys

    path = keys_place(doctor.settings)
    keys = read_keys(path)
    check_exposure(doctor.settings)
    if keys and isinstance(path, Path) and path.stat().st_mode & OTHERS:
        yield doctor.finding("keys", "warn", "keys_open", path=path)
    yield doctor.finding("keys", "ok", "keys" if keys else "no_keys", count=len(keys))


def check_language_model(doctor: Doctor) -> Iterator[HealthFinding]:
    """The language model that reads along answers one short question."""
    from kb.second_reader.answer import NoAnswer

    settings = doctor.settings
    if not settings.llm_base_url:
        yield doctor.finding("language_model", "skip", "no_language_model")
        return
    from kb.second_reader.asking import printed_address
    from kb.second_reader.client import ModelClient

    address = printed_address(settings.llm_base_url)
    client = ModelClient(
        settings.llm_base_url,
        settings.llm_model,
        settings.llm_api_key,
        limit_s=settings.llm_timeout,
    )
    try:
        reply = client.ask([{"role": "user", "content": PROBE}])
    except NoAnswer as error:
        why = doctor.words(f"second.{error.reason}", **error.values)
        label = "language_model_silent"
        yield doctor.finding("language_model", "fail", label, address=address, why=why)
    else:
        label, model = "language_model", reply.model
        yield doctor.finding("language_model", "ok", label, address=address, model=model)
    finally:
        client.close()


def check_slack(doctor: Doctor) -> Iterator[HealthFinding]:
    """The tokens are there, and Slack takes them."""
    settings = doctor.settings
    if not settings.slack_bot_token:
        yield doctor.finding("slack", "skip", "no_slack")
        return
    try:
        from app.slack.workspaces import Workspaces, check_settings
    except ImportError as error:
        raise MissingExtraError(
            f"the Slack bot needs a package that is not installed ({error.name})",
            todo="pip install 'timeout-kb[slack]'",
        ) from error
    import asyncio

    check_settings(settings, mode=settings.slack_mode)

    async def ask() -> list[str]:
        workspaces = Workspaces(settings)
        try:
            await workspaces.open()
            if settings.slack_mode == "socket":
                await workspaces.check_app_token()
            return [str(one.identity.team_id) for one in workspaces]
        finally:
            await workspaces.close()

    yield doctor.finding("slack", "ok", "slack", teams=", ".join(asyncio.run(ask())))


CHECKS: dict[CheckName, Callable[[Doctor], Iterator[HealthFinding]]] = {
    "versions": check_versions,
    "extras": check_extras,
    "home": check_home,
    "disk": check_disk,
    "file_system": check_file_system,
    "database": check_database_file,
    "index": check_index,
    "kept": check_kept,
    "backups": check_backups,
    "data": check_data,
    "embedding": check_embedding,
    "ports": check_ports,
    "keys": check_keys,
    "language_model": check_language_model,
    "slack": check_slack,
}
