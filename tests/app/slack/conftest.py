"""What the tests of the Slack bot share: a fake Slack, the bot's process, a reference service."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kb.bootstrap import open_service
from kb.service import Service
from kb.settings import Settings
from tests.app.slack.fake.fake_slack import FakeSlack
from tests.app.slack.fake.installation import (
    Installation,
    check_all_visible,
    check_secrets,
    installed,
)
from tests.app.slack.fake.manifest import Manifest, read_manifest
from tests.app.slack.fake.workspace import Channel, Workspace

MAX_FILE = 8 * 1024 * 1024  # of the bots started here
_URL = re.compile(r"https?://[^\s<>\"'`)\]}|]+")


@pytest.fixture(scope="session")
def manifest(data_dir: Path) -> Manifest:
    """The app's manifest as shipped."""
    return read_manifest(data_dir / "slack" / "manifest.yaml")


@pytest.fixture(scope="session")
def built_home(built_home: Callable[[], Path]) -> Path:
    """A state folder with the knowledge base built, to be copied."""
    return built_home()


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
def shared_installation(
    manifest: Manifest,
    built_home: Path,
    known_urls: frozenset[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installation]:
    """The Socket Mode bot of all tests that need no bot of their own."""
    home = Path(shutil.copytree(built_home, tmp_path_factory.mktemp("bot") / "home"))
    with installed(manifest, home, known_urls, slack_max_file=str(MAX_FILE)) as shared:
        yield shared


@pytest.fixture(scope="session")
def web(shared_installation: Installation) -> Iterator[Service]:
    """The service as the page or the API beside the bot has it: same state folder."""
    service = open_service(Settings(home=shared_installation.bot.home))
    yield service
    service.close()


@pytest.fixture
def installation(
    shared_installation: Installation, known_urls: frozenset[str]
) -> Iterator[Installation]:
    """The shared bot; after the test everything it said is checked."""
    yield shared_installation
    check_all_visible(shared_installation.slack, known_urls)
    check_secrets(shared_installation.slack, shared_installation.bot)


@pytest.fixture
def slack(installation: Installation) -> FakeSlack:
    """The fake Slack of the shared bot."""
    return installation.slack


@pytest.fixture
def alpha(installation: Installation) -> Workspace:
    """A workspace."""
    return installation.alpha


@pytest.fixture
def channel(alpha: Workspace, request: pytest.FixtureRequest) -> Channel:
    """A channel of the test's own."""
    return alpha.add_channel(request.node.name[:60])


@pytest.fixture
def direct(alpha: Workspace, request: pytest.FixtureRequest) -> Channel:
    """A direct conversation of the test's own."""
    return alpha.add_channel(request.node.name[:60], kind="im")


def tells_oom(shown: str) -> bool:
    """Whether a message says, in either language, that a rank ran out of memory."""
    return "ran out of GPU memory" in shown or "显存耗尽" in shown
