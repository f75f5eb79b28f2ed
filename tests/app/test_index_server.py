"""A service whose index lies on a Qdrant server, which goes and comes back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

pytest.importorskip("qdrant_client", reason="qdrant-client is not installed (extra qdrant)")
pytest.importorskip("qdrant_edge", reason="qdrant-edge-py is not installed (extra dev)")

from app.doctor import Doctor, check_index
from app.inputs.archive import archived_log
from app.render.terminal import notice_lines
from kb.bootstrap import open_service
from kb.errors import NotFoundError, SearchIndexError, SettingsError, UnreachableIndexError
from kb.knowledge.labels import Words
from kb.service import Service
from kb.settings import Settings, load_settings
from tests.app.samples import LOG
from tests.kb.fakes import make_entry
from tests.qdrant import EdgeClient, QdrantServer
from tests.shipped_part import shipped_cases, shipped_part

CASES = 6
KEY = "dragonfruit-9173"


@dataclass(frozen=True)
class IndexOnServer:
    """A service, the server with its index, and what stops that."""

    service: Service
    server: QdrantServer
    running: ExitStack

    @contextmanager
    def gone(self) -> Iterator[None]:
        """The server is away meanwhile."""
        self.running.close()
        try:
            yield
        finally:
            self.running.enter_context(self.server.running())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Path:
    """The shipped data with a few cases."""
    cases = shipped_cases(data_dir)[:CASES]
    return shipped_part(tmp_path_factory.mktemp("data"), data_dir, cases)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Iterator[IndexOnServer]:
    """A service on a server that wants a key and runs."""
    home = tmp_path_factory.mktemp("home")
    server = QdrantServer(EdgeClient(tmp_path_factory.mktemp("qdrant")), key=KEY)
    with ExitStack() as running, pytest.MonkeyPatch.context() as patch:
        patch.setattr("kb.index.qdrant_connection.RETRY_S", 0.0)
        patch.setattr("kb.index.qdrant_connection.LIMIT_S", 600)  # the machine may be busy
        running.enter_context(server.running())
        address = f"qdrant://{KEY}@127.0.0.1:{server.port}"
        service = open_service(Settings(home=home, data=data, index=address))
        yield IndexOnServer(service, server, running)
        service.close()
    server.client.close()


def test_without_the_server_logs_are_diagnosed_and_it_is_said(
    opened: IndexOnServer, tmp_path: Path
) -> None:
    """Causes stay, similar cases go with a line that says why; additions are refused whole."""
    service = opened.service
    whole = service.diagnose_text(LOG, language="en")
    assert whole.notices == ()
    assert service.health().index_failure == ""
    before = service.version()
    with opened.gone():
        less = service.diagnose_text(LOG, language="en")
        assert [cause.id for cause in less.causes][:1] == [cause.id for cause in whole.causes][:1]
        assert [notice.kind for notice in less.notices] == ["not_searched"]
        words = Words(service.knowledge.labels, "en")
        assert "Similar cases were not searched for" in "\n".join(notice_lines(less, words, 200))
        (tmp_path / "rank0.log").write_text(LOG)
        assert archived_log("en", service, str(tmp_path / "rank0.log")).status == whole.status
        report = service.health()
        assert report.ready
        assert "cannot be reached" in report.index_failure
        assert KEY not in report.index_failure
        with pytest.raises(UnreachableIndexError):
            service.search("checkpoint")
        with pytest.raises(UnreachableIndexError):
            service.apply([make_entry("new", "quasar")])
        with pytest.raises(NotFoundError):
            service.entry("new")
        assert service.version() != before
    assert service.diagnose_text(LOG, language="en").notices == ()
    service.apply([make_entry("new", "quasar")])
    assert service.search("quasar").hits[0].entry_id == "new"
    assert service.health().index_failure == ""


def test_what_no_waiting_heals_is_said_at_start(opened: IndexOnServer, tmp_path: Path) -> None:
    """A wrong key and a foreign collection refuse, a server that is gone does not.

    The key of the environment is used like one of the address, and not shown.
    """
    address = f"qdrant://127.0.0.1:{opened.server.port}"
    settings = replace(opened.service.settings, index=address, index_key="wrong-" + KEY)
    with pytest.raises(SearchIndexError, match="refuses the key") as refused:
        open_service(settings)
    assert KEY not in str(refused.value) + repr(settings)
    # another home is another knowledge base
    other = replace(settings, index_key=KEY, home=tmp_path / "other")
    with pytest.raises(SearchIndexError, match="built by another program"):
        open_service(other)
    said: list[str] = []
    with opened.gone():
        service = open_service(replace(settings, index_key=KEY), notify=said.append)
        assert [one.kind for one in service.diagnose_text(LOG).notices] == ["not_searched"]
    assert any("nothing is searched until it is back" in line for line in said)
    assert service.search("checkpoint").hits
    service.close()


def test_the_doctor_asks_it(opened: IndexOnServer) -> None:
    """Where it is and what it has, without the key; what is wrong where it is gone."""
    settings = opened.service.settings
    doctor = Doctor(settings=settings, words=Words(opened.service.knowledge.labels, "en"))
    (one,) = check_index(doctor)
    assert one.standing == "ok"
    place = f"qdrant://127.0.0.1:{opened.server.port}/timeout_kb"
    assert one.what == f"{place}, {opened.service.store.count()} entries"
    with opened.gone(), pytest.raises(UnreachableIndexError) as gone:
        list(check_index(doctor))
    one = doctor.failure("index", gone.value)
    assert "cannot be reached" in one.what
    assert "TIMEOUT_KB_INDEX" in one.todo


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"TIMEOUT_KB_INDEX": f"milvus://{KEY}@box"}, "TIMEOUT_KB_INDEX is neither embedded nor"),
        (
            {
                "TIMEOUT_KB_INDEX": "qdrant://box",
                "TIMEOUT_KB_STORE": "postgresql://box/kb",
                "TIMEOUT_KB_GENERATIONS": "/shared",
            },
            "TIMEOUT_KB_GENERATIONS and TIMEOUT_KB_INDEX are both set",
        ),
    ],
)
def test_settings_that_cannot_be_meant(environ: dict[str, str], said: str) -> None:
    """They are refused at start; what may be a key is not repeated."""
    with pytest.raises(SettingsError, match=said) as refused:
        load_settings(environ)
    assert KEY not in str(refused.value)
