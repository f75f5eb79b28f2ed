"""What the tests of the Slack bot share: a fake Slack, the bot's process, a reference service."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.composition import open_service
from kb.service import Service
from kb.settings import Settings
from tests.slack.bot import Bot
from tests.slack.fake_slack import FakeSlack
from tests.slack.manifest import Manifest, read_manifest
from tests.slack.office import Office, check_everything_said, check_secrets
from tests.slack.workspace import Channel, Workspace

MAX_FILE = 8 * 1024 * 1024  # of the bots started here
_URL = re.compile(r"https?://[^\s<>\"'`)\]}|]+")


@pytest.fixture(scope="session")
def manifest(data_dir: Path) -> Manifest:
    """The app's manifest as shipped."""
    return read_manifest(data_dir / "slack" / "manifest.yaml")


@pytest.fixture(scope="session")
def built_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with the knowledge base built, to be copied."""
    home = tmp_path_factory.mktemp("built") / "home"
    open_service(Settings(home=home)).close()
    return home


@pytest.fixture
def home(built_home: Path, tmp_path: Path) -> Path:
    """A state folder of the test's own."""
    return Path(shutil.copytree(built_home, tmp_path / "home"))


@pytest.fixture(scope="session")
def reference(built_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service in this process: what it says, the bot must say."""
    home = shutil.copytree(built_home, tmp_path_factory.mktemp("reference") / "home")
    service = open_service(Settings(home=Path(home)))
    yield service
    service.close()


@pytest.fixture(scope="session")
def known_urls(data_dir: Path) -> frozenset[str]:
    """Every address in the shipped knowledge: nothing else may be linked."""
    found: set[str] = set()
    for path in (*data_dir.rglob("*.yaml"), *data_dir.rglob("*.md")):
        found.update(url.rstrip(".,;:") for url in _URL.findall(path.read_text(encoding="utf-8")))
    return frozenset(found)


@pytest.fixture(scope="session")
def shared_office(
    manifest: Manifest, built_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Office]:
    """The Socket Mode bot of all tests that need no bot of their own."""
    fake = FakeSlack(manifest)
    fake.start()
    alpha, beta = fake.workspace("alpha"), fake.workspace("beta")
    home = shutil.copytree(built_home, tmp_path_factory.mktemp("bot") / "home")
    bot = Bot(fake, Path(home), slack_max_file=str(MAX_FILE)).start()
    yield Office(slack=fake, bot=bot, alpha=alpha, beta=beta)
    code = bot.stop()
    fake.stop()
    assert code == 0, bot.said[-4000:]


@pytest.fixture(scope="session")
def web(shared_office: Office) -> Iterator[Service]:
    """The service as the page or the API beside the bot has it: same state folder."""
    service = open_service(Settings(home=shared_office.bot.home))
    yield service
    service.close()


@pytest.fixture
def office(shared_office: Office, known_urls: frozenset[str]) -> Iterator[Office]:
    """The shared bot; after the test everything it said is checked."""
    yield shared_office
    check_everything_said(shared_office.slack, known_urls)
    check_secrets(shared_office.slack, shared_office.bot)


@pytest.fixture
def slack(office: Office) -> FakeSlack:
    """The fake Slack of the shared bot."""
    return office.slack


@pytest.fixture
def alpha(office: Office) -> Workspace:
    """A workspace."""
    return office.alpha


@pytest.fixture
def channel(alpha: Workspace, request: pytest.FixtureRequest) -> Channel:
    """A channel of the test's own."""
    return alpha.add_channel(request.node.name[:60])


@pytest.fixture
def direct(alpha: Workspace, request: pytest.FixtureRequest) -> Channel:
    """A direct conversation of the test's own."""
    return alpha.add_channel(request.node.name[:60], kind="im")
