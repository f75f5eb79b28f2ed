"""A site folder through the faces: shown as the team's own, and a broken one is an error line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from fastapi.testclient import TestClient

from app.api import create_app
from app.render.forms import render_diagnosis
from app.render.listing import render_cause
from app.slack.blocks.diagnosis import diagnosis_message
from app.slack.requests import DiagnosisRef
from kb.bootstrap import open_service
from kb.knowledge.labels import Words
from kb.service import Service
from kb.settings import Settings
from kb.types.vocabulary import Language
from tests.site_folder import LOG, write_site


@pytest.fixture(scope="module")
def real(
    built_home: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """The shipped knowledge with a team's beside it."""
    folder = write_site(tmp_path_factory.mktemp("site") / "site")
    service = open_service(Settings(home=built_home(), site=folder))
    yield service
    service.close()


@pytest.mark.parametrize("form", ["text", "markdown", "slack"])
def test_what_is_the_teams_is_called_so(real: Service, form: str) -> None:
    """Notices and the bad host above the verdict; fix, pattern, setting and runbook marked."""
    answer = real.diagnose_text(LOG, language="en")
    labels = real.knowledge.labels
    if form == "slack":
        ref = DiagnosisRef(saved_id="abcdefghijklmnop", language="en", conversation="")
        shown = str(diagnosis_message(answer, Words(labels, "en"), ref).blocks)
    else:
        shown = render_diagnosis(answer, labels, form, width=100).replace("\\", "")
    verdict = shown.index("Saving or loading a checkpoint is too slow")
    for notice in ("Storage is under maintenance", "gpu-node-17.cluster.local is on your team"):
        assert shown.index(notice) < verdict
    assert "long over" not in shown
    assert "about the network alone" not in shown
    for own in ("Remount the Quobyte volume", "from: your team", "your team's own"):
        assert own.replace("from: ", "") in shown
    assert "https://wiki.example.com/storage" in shown
    assert "https://status.example.com/1" in shown


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_cause_is_shown_with_what_the_team_adds(real: Service, lang: Language) -> None:
    """Its runbooks, and the notices about it that are due; those above all answers are not its."""
    words = Words(real.knowledge.labels, lang)

    def shown(cause: str) -> str:
        item, notices = real.knowledge.cause_by_id[cause], real.notices_about(cause, lang)
        return click.unstyle(render_cause(item, words, width=200, notices=notices))

    storage, network = shown("checkpoint-io"), shown("network-config")
    runbook = {"zh": "存储卡住时怎么办", "en": "When storage stalls"}[lang]
    notice = {"zh": "只与网络有关", "en": "about the network alone"}[lang]
    assert f"{runbook} https://wiki.example.com/storage" in storage
    assert words("site.runbook") in storage
    assert notice not in storage
    assert f"{words('site.notice')}" in network
    assert notice in network
    assert runbook not in network
    for text in (storage, network):
        assert {"zh": "正在维护", "en": "under maintenance"}[lang] not in text


def test_a_changed_site_folder_waits_for_a_restart(
    built_home: Callable[[], Path], tmp_path: Path
) -> None:
    """`/readyz` says so from the change on, and no more once the folder was read anew."""
    folder = write_site(tmp_path / "site")
    settings = Settings(home=built_home(), site=folder)
    for waits, change in ((False, True), (False, False)):
        service = open_service(settings)
        with TestClient(create_app(service, settings), base_url="http://127.0.0.1") as client:
            assert client.get("/readyz").json()["site_waits"] is waits
            if change:
                (folder / "hosts.yaml").unlink()
                assert client.get("/readyz").json()["site_waits"]
                assert client.get("/readyz").status_code == 200
        service.close()


def test_the_values_say_whose_they_are(real: Service) -> None:
    """`origin` is site for what the team adds and empty for what is shipped, over the API too."""
    with TestClient(create_app(real, real.settings), base_url="http://127.0.0.1") as client:
        body = client.post("/v1/diagnose", json={"text": LOG, "lang": "en"}).json()
    cause = body["causes"][0]
    assert cause["id"] == "checkpoint-io"
    assert cause["runbooks"] == [
        {"title": "When storage stalls", "url": "https://wiki.example.com/storage"}
    ]
    own = [fix["id"] for fix in cause["fixes"] if fix["origin"] == "site"]
    assert own == ["checkpoint-io/team-remount"] == [cause["fixes"][0]["id"]]
    assert [item["source"] for item in cause["evidence"] if item["origin"]] == [
        "team-quobyte-stall"
    ]
    assert [(item["setting"], item["origin"]) for item in body["warnings"]] == [
        ("TEAM_QB_TIMEOUT=30", "site")
    ]
    assert [item["kind"] for item in body["notices"]] == ["bad_host", "notice"]


def test_without_a_site_folder_nothing_is_the_teams(
    real: Service, built_home: Callable[[], Path]
) -> None:
    """The folder is read where it is set, and leaves nothing behind."""
    service = open_service(Settings(home=built_home()))
    try:
        answer = service.diagnose_text(LOG, language="en")
    finally:
        service.close()
    assert answer.notices == ()
    assert "your team" not in render_diagnosis(answer, service.knowledge.labels, "text", width=100)
    assert answer != real.diagnose_text(LOG, language="en")


@pytest.mark.parametrize(
    "verb", [["diagnose"], ["serve", "--port", "0"]], ids=["diagnose", "serve"]
)
def test_a_broken_folder_is_one_line(tmp_path: Path, verb: list[str]) -> None:
    """No face starts with a traceback: the error names the file and what to do."""
    folder = write_site(tmp_path / "site")
    (folder / "patterns.yaml").write_text("- id: [unclosed", encoding="utf-8")
    settings = {"TIMEOUT_KB_HOME": str(tmp_path / "home"), "TIMEOUT_KB_SITE": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", "from app.cli.main import main; main()", *verb],
        input=LOG,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **settings},
    )
    assert done.returncode == 1
    assert f"error: {folder}/patterns.yaml line 2 is not YAML" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_page_has_the_notices_above_its_verdict(real: Service) -> None:
    """As text and links, in the first thing that is laid out."""
    from app.web.components.answer_head import headline_html

    reading = real.read_text(LOG)
    answer = real.answer(reading, language="zh")
    words = Words(real.knowledge.labels, "zh")
    shown = str(headline_html(answer, words))
    notice = shown.index("团队通知：存储正在维护")
    assert shown.index("团队通知：主机 gpu-node-17.cluster.local") < notice < shown.index("<h1")
    assert 'href="https://status.example.com/1"' in shown
