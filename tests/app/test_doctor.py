"""`timeout-kb doctor`: an installation in order, and one broken in each way."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from app import doctor
from app.api.auth import add_key, keys_path
from app.cli import main as cli
from app.cli.backup import command as backup_command
from app.cli.common import State
from app.doctor import CHECKS, CheckName, Doctor, HealthFinding
from kb.errors import SettingsError
from kb.files import file_system
from kb.knowledge.labels import Words
from kb.settings import Settings, load_settings
from kb.store import Store
from kb.store.backup import KEPT
from kb.types.knowledge import Bilingual
from tests.kb.second_reader.conftest import ChatServer
from tests.postgres import PostgresServer

BOT, APP = "xoxb-1234", "xapp-5678"
Found = Callable[..., list[tuple[str, str, str]]]


@pytest.fixture(scope="module")
def origin(built_home: Callable[[], Path]) -> Path:
    """A state folder in order; tests that break one copy it."""
    return built_home()


@pytest.fixture
def home(origin: Path, tmp_path: Path) -> Path:
    """A state folder of the test's own."""
    return Path(shutil.copytree(origin, tmp_path / "built"))


@pytest.fixture
def found(labels: dict[str, Bilingual]) -> Found:
    """What one check of an installation says: (standing, what, todo) of each finding."""

    def found(check: CheckName, settings: Settings) -> list[tuple[str, str, str]]:
        one = Doctor(settings=settings, words=Words(labels, "en"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(doctor, "CHECKS", {check: CHECKS[check]})
            findings = list(one.findings())
        assert {finding.check for finding in findings} == {check}
        return [(finding.standing, finding.what, finding.todo) for finding in findings]

    return found


def test_an_installation_in_order_is_well_in_both_languages(
    origin: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every check has its line, nothing has to be done, and the exit code is 0."""
    state = State(settings_source=lambda: Settings(home=origin, port=0, web_port=0))
    assert cli.run(["doctor"], state=state) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[-1] == "Nothing has to be done."
    assert [line[:4] for line in lines if not line.startswith(" ")][:-1] == [
        *["ok  "] * 8,
        "none",  # no backup yet
        *["ok  "] * 5,
        *["none"] * 2,
    ]
    monkeypatch.setattr(doctor, "CHECKS", {"home": CHECKS["home"]})
    assert cli.run(["doctor", "--lang", "zh"], state=state) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "没有需要处理的问题。"


def test_a_broken_one_is_told_as_json_with_exit_code_1(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each finding says what to do; nothing was made."""
    monkeypatch.setattr(doctor, "CHECKS", {name: CHECKS[name] for name in ("home", "data")})
    settings = Settings(home=tmp_path / "new", data=tmp_path / "no-data", port=0)
    state = State(settings_source=lambda: settings)
    assert cli.run(["doctor", "--format", "json"], state=state) == 1
    answer = json.loads(capfd.readouterr().out)
    assert answer["well"] is False
    assert [(one["check"], one["standing"]) for one in answer["findings"]] == [
        ("home", "ok"),
        ("data", "fail"),
    ]
    assert "TIMEOUT_KB_DATA" in answer["findings"][1]["todo"]
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_setting_is_a_finding(capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing else can be examined before; the line names it and what is allowed."""

    def wrong() -> Settings:
        return load_settings({"TIMEOUT_KB_PORT": "http"})

    with pytest.raises(SettingsError):
        wrong()
    assert cli.run(["doctor"], state=State(settings_source=wrong)) == 1
    out = capfd.readouterr().out
    assert out.startswith("fail settings: TIMEOUT_KB_PORT")
    assert "→ " in out
    assert out.endswith("1 thing has to be put right.\n")


def test_a_package_of_another_version_is_named(
    found: Found, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """With the line that installs the right one; one that is missing, too."""
    wanted = [
        Requirement("hyperscan==0.0.1"),
        Requirement("no-such-package>=2"),
        Requirement("click>=8"),
    ]
    monkeypatch.setattr(doctor, "requirements", lambda: wanted)
    (other, missing) = found("versions", settings)
    assert other[0] == missing[0] == "fail"
    assert other[2] == "pip install 'hyperscan==0.0.1'"
    assert "no-such-package is –" in missing[1]


def test_an_extra_that_the_settings_need_is_named(
    found: Found, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """What is merely not there is no failure."""
    wanted = [
        Requirement("no-such-slack>=1; extra == 'slack'"),
        Requirement("no-such-page>=1; extra == 'web'"),
        Requirement("click>=8; extra == 'llm'"),
    ]
    monkeypatch.setattr(doctor, "requirements", lambda: wanted)
    told = ("ok", "installed: llm; not installed: slack, web", "")
    assert found("extras", settings) == [told]
    chats = replace(settings, slack_bot_token=BOT, llm_base_url="http://x", llm_model="m")
    assert found("extras", chats) == [
        told,
        (
            "fail",
            "the settings ask for slack, which is not installed",
            "pip install 'timeout-kb[slack]'",
        ),
    ]


def test_the_state_folder_is_the_owners_alone(found: Found, tmp_path: Path) -> None:
    """One that others can enter is to mind; one that is a file, or cannot be made, is wrong."""
    folder = tmp_path / "home"
    assert found("home", Settings(home=folder))[0][0] == "ok"
    folder.mkdir(mode=0o700)
    assert found("home", Settings(home=folder))[0][0] == "ok"
    folder.chmod(0o755)
    (row,) = found("home", Settings(home=folder))
    assert (row[0], row[2]) == ("warn", f"unless a group shares it on purpose: chmod 700 {folder}")
    file = tmp_path / "file"
    file.write_text("")
    for wrong in (file, file / "below"):
        (row,) = found("home", Settings(home=wrong))
        assert row[0] == "fail"
        assert "TIMEOUT_KB_HOME" in row[2]


@pytest.mark.parametrize(
    ("free_mib", "standing"),
    [(100, "fail"), (199, "fail"), (200, "warn"), (1023, "warn"), (1024, "ok")],
)
def test_a_disk_that_fills_up_is_told_before_it_is_full(
    found: Found,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    free_mib: int,
    standing: str,
) -> None:
    """Below a gibibyte it is to mind, below 200 MiB it is wrong."""
    usage = SimpleNamespace(free=free_mib * 1024 * 1024)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage)
    assert found("disk", settings)[0][0] == standing


def test_a_network_file_system_is_told(
    found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database's locks cannot be trusted there."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 0:1 / / rw - ext4 a rw\n2 1 0:2 / {tmp_path} rw - nfs4 b rw\n")
    monkeypatch.setattr(file_system, "MOUNTS", mounts)
    ((standing, what, todo),) = found("file_system", Settings(home=tmp_path / "home"))
    assert standing == "fail"
    assert "nfs4" in what
    assert "TIMEOUT_KB_HOME" in todo
    mounts.write_text("1 0 0:1 / / rw - 9p a rw\n")
    assert found("file_system", Settings(home=tmp_path / "home"))[0][0] == "warn"


def test_a_damaged_or_foreign_database_is_told(found: Found, home: Path) -> None:
    """So is one that another program writes; the entries of a good one are counted."""
    path, settings = home / "kb.sqlite3", Settings(home=home)
    ((standing, what, _),) = found("database", settings)
    assert standing == "ok"
    assert "273" in what or "entries" in what
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        ((standing, what, todo),) = found("database", settings)
        other.rollback()
    other.close()
    assert (standing, bool(todo)) == ("fail", True)
    assert "being written" in what
    path.write_bytes(b"no database" * 1000)
    ((standing, what, todo),) = found("database", settings)
    assert (standing, bool(todo)) == ("fail", True)
    assert "damaged" in what
    path.unlink()
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE t (x)")
    foreign.close()
    assert found("database", settings)[0][0] == "fail"


def test_a_database_server_is_asked(
    found: Found, home: Path, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Its entries are counted; one that is gone is told without its password."""
    address = postgres.address()
    move_store = ["move-store", str(home), address]
    assert cli.run(move_store, state=State(settings_source=lambda: Settings(home=home))) == 0
    settings = Settings(home=tmp_path / "new", store=address)
    ((standing, what, _),) = found("database", settings)
    assert (standing, "entries" in what) == ("ok", True)
    assert found("index", settings)[0][1] == "not there yet; the first command builds it"
    assert found("kept", settings)[0][0] == "ok"
    ((standing, what, _),) = found("backups", settings)
    assert (standing, "pg_dump" in what) == ("skip", True)
    gone = Settings(home=tmp_path / "new", store="postgresql://ann:hunter2@127.0.0.1:1/db")
    for check in ("database", "index", "kept"):
        ((standing, what, todo),) = found(check, gone)
        assert (standing, "ann@127.0.0.1:1/db" in what) == ("fail", True)
        assert "TIMEOUT_KB_STORE" in todo
        assert "hunter2" not in what + todo
    assert "hunter2" not in found("backups", gone)[0][1]


def test_a_server_is_backed_up_and_repaired_where_it_runs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Both verbs say with what, and do nothing."""
    settings = Settings(home=tmp_path / "home", store="postgresql://127.0.0.1:1/db")
    for words in (["backup"], ["doctor", "--repair"]):
        assert cli.run(words, state=State(settings_source=lambda: settings)) == 2
        assert "pg_restore" in capfd.readouterr().err
    assert not settings.home.exists()


def test_a_damaged_index_is_told_with_the_repair(found: Found, home: Path) -> None:
    """Missing is no fault: the next command builds it; so is one that an older program left."""
    settings = Settings(home=home)
    ((standing, what, _),) = found("index", settings)
    assert (standing, "up to date" in what) == ("ok", True)
    (victim,) = (home / "index").glob("*/gen-*/catalogue*")
    victim.write_bytes(victim.read_bytes()[:-1])
    ((standing, what, todo),) = found("index", settings)
    assert (standing, "ingest --rebuild" in todo) == ("fail", True)
    assert "damaged" in what
    (folder,) = (home / "index").iterdir()
    folder.rename(home / "index" / ("0" * 16))
    ((standing, what, _),) = found("index", settings)
    assert (standing, "next command" in what) == ("ok", True)
    shutil.rmtree(home / "index")
    ((standing, what, _),) = found("index", settings)
    assert (standing, "not there yet" in what) == ("ok", True)


def test_what_is_kept_is_counted(found: Found, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers, conversations and captures, with what they may take; nearly full is to mind."""
    settings = Settings(home=home)
    store = Store.open(home / "kb.sqlite3")
    store.records.put_diagnosis("d", b"x" * 600_000, created_s=1.0)
    store.records.put_conversation("c", b"y" * 700_000, now_s=1.0)
    store.close()
    (home / "captures").mkdir()
    (home / "captures" / "timeout-kb-job-1.tar.zst").write_bytes(b"z" * 300_000)
    kept = "1 diagnosis and 1 conversation, 1.2 MiB of 1024.0 MiB"
    assert found("kept", settings) == [("ok", f"{kept}; 1 of at most 20 captures, 0.3 MiB", "")]
    monkeypatch.setattr("kb.store.quota.ALL_BYTES", 1_400_000)
    ((standing, what, todo),) = found("kept", settings)
    assert (standing, "1.2 MiB of 1.3 MiB" in what, "oldest" in todo) == ("warn", True, True)


def test_a_damaged_database_is_repaired_from_the_latest_backup(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each step is a line; without a backup the way out is named; a whole one stays as it is."""
    state = State(settings_source=lambda: Settings(home=home, port=0, web_port=0))
    assert cli.run(["doctor", "--repair"], state=state) == 0
    assert capfd.readouterr().err.startswith("the database is whole")
    path, whole = home / "kb.sqlite3", (home / "kb.sqlite3").read_bytes()
    path.write_bytes(whole[:8192] + bytes(len(whole) - 8192))
    assert cli.run(["doctor", "--repair"], state=state) == 1
    damaged, refusal = capfd.readouterr().err.splitlines()
    assert "is damaged" in damaged
    assert "--from" in refusal
    path.write_bytes(whole)
    assert cli.run(["backup", "--keep", "1"], state=state) == 0
    assert ", checked" in capfd.readouterr().out
    path.write_bytes(whole[:8192] + bytes(len(whole) - 8192))
    assert cli.run(["search", "NCCL"], state=state) == 1
    refusal = capfd.readouterr().err
    assert "timeout-kb doctor --repair" in refusal
    assert "timeout-kb backup" in refusal
    assert cli.run(["doctor", "--repair"], state=state) == 0
    out, err = capfd.readouterr()
    steps = [line.split(" ")[1] for line in err.splitlines()]
    assert steps == ["database", "backup", "damaged", "database"]
    assert "backups: the latest of" in out
    with state.service() as service:
        assert service.store.count() == len(service.knowledge.cases)
        assert service.search("NCCL timeout").hits


def test_the_commands_say_how_many_backups_stay() -> None:
    """The option's default is the library's."""
    (keep,) = (option for option in backup_command.params if option.name == "keep")
    assert keep.default == KEPT


def test_a_wrong_file_of_the_team_is_named(found: Found, tmp_path: Path) -> None:
    """With its place; the folder that is not there as well."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "causes.yaml").write_text("- id: no-such-cause\n")
    rows = found("data", Settings(home=tmp_path / "home", site=site))
    assert {row[0] for row in rows} == {"fail"}
    assert "causes.yaml" in rows[0][1]
    assert "check-data" in rows[0][2]


def test_a_model_that_cannot_be_loaded_is_told(found: Found, tmp_path: Path) -> None:
    """The embedded one is missing where the data folder is another's."""
    ((standing, what, todo),) = found("embedding", Settings(home=tmp_path, data=tmp_path))
    assert standing == "fail"
    assert "lacks rows.npy" in what
    assert "restore data/model" in todo


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    """A language model's server."""
    one = ChatServer()
    yield one
    one.close()


@pytest.fixture
def taken() -> Iterator[int]:
    """A port where a program listens that is not ours."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        yield listening.getsockname()[1]


def test_ports_are_free_or_ours(found: Found, taken: int, chat: ChatServer, tmp_path: Path) -> None:
    """One that another program has, or that both have, is wrong and its setting named."""
    port = int(chat.url.partition("127.0.0.1:")[2].split("/")[0])
    rows = found("ports", Settings(home=tmp_path, port=0, web_port=port))
    assert rows[0][0] == "ok"
    assert rows[1][0] == "fail"
    assert "TIMEOUT_KB_WEB_PORT" in rows[1][2]
    ((standing, what, _),) = found("ports", Settings(home=tmp_path, port=taken, web_port=taken))
    assert standing == "fail"
    assert "same port" in what


def test_keys_are_for_their_owner(found: Found, tmp_path: Path) -> None:
    """A file that others read is to mind; one that is damaged, or missing to the outside, wrong."""
    settings = Settings(home=tmp_path / "home")
    path = keys_path(settings)
    assert found("keys", settings) == [("ok", "no keys: this machine alone gets in", "")]
    ((standing, _, todo),) = found("keys", replace(settings, host="10.0.0.1"))
    assert (standing, "timeout-kb keys add" in todo) == ("fail", True)
    add_key(path, "one", "read")
    assert found("keys", replace(settings, host="10.0.0.1")) == [("ok", "1 key", "")]
    path.chmod(0o644)
    assert found("keys", settings)[0][::2] == ("warn", f"chmod 600 {path}")
    path.write_text("{")
    ((standing, _, todo),) = found("keys", settings)
    assert (standing, "make new keys" in todo) == ("fail", True)


def test_the_language_model_is_asked_once(found: Found, chat: ChatServer, tmp_path: Path) -> None:
    """It answers, refuses the key, or nobody is there: what to check is named."""
    none = Settings(home=tmp_path)
    assert found("language_model", none) == [("skip", "none is set", "")]
    settings = replace(none, llm_base_url=chat.url, llm_model="m", llm_api_key="k", llm_timeout=20)
    assert found("language_model", settings)[0][0] == "ok"
    assert len(chat.questions) == 1
    chat.status = 401
    ((standing, what, todo),) = found("language_model", settings)
    assert (standing, "refuses the key" in what) == ("fail", True)
    assert "TIMEOUT_KB_LLM_API_KEY" in todo
    nobody = replace(settings, llm_base_url="http://127.0.0.1:9/v1")
    ((standing, what, _),) = found("language_model", nobody)
    assert (standing, "cannot be reached" in what) == ("fail", True)


def test_slacks_tokens_are_checked(found: Found, tmp_path: Path) -> None:
    """A token of another kind, and a Slack that does not answer; no token is shown."""
    none = Settings(home=tmp_path)
    assert found("slack", none) == [("skip", "none is set", "")]
    wrong = replace(none, slack_bot_token=APP, slack_app_token=APP)
    ((standing, what, todo),) = found("slack", wrong)
    assert standing == "fail"
    assert "TIMEOUT_KB_SLACK_BOT_TOKEN" in what
    assert "OAuth" in todo
    assert APP not in what + todo
    away = replace(
        none,
        slack_bot_token=BOT,
        slack_app_token=APP,
        slack_api_url="http://127.0.0.1:9/",
    )
    ((standing, what, todo),) = found("slack", away)
    assert (standing, "cannot be reached" in what) == ("fail", True)
    assert "TIMEOUT_KB_SLACK_API_URL" in todo


def test_a_check_that_fails_itself_does_not_stop_the_others(
    labels: dict[str, Bilingual],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    logged: list[object],
) -> None:
    """It is a finding without details; the log has them."""

    def fail(_: Doctor) -> Iterator[HealthFinding]:
        raise RuntimeError("secret")
        yield

    monkeypatch.setattr(doctor, "CHECKS", {"disk": fail, "home": CHECKS["home"]})
    findings = list(Doctor(settings=settings, words=Words(labels, "en")).findings())
    assert [(one.check, one.standing) for one in findings] == [("disk", "fail"), ("home", "ok")]
    assert "secret" not in findings[0].what
    assert len(logged) == 1
