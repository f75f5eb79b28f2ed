"""A site folder: added to the shipped knowledge, checked, and refused with what is wrong in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.check_data import data_errors
from kb.bootstrap import wrong_expressions
from kb.errors import DataError
from kb.knowledge.load import Knowledge, load_knowledge
from kb.knowledge.site import bad_hosts, with_site
from kb.types.knowledge import BadHost, Bilingual
from tests.site_folder import FILES, write_site


@pytest.fixture
def site(tmp_path: Path, data_dir: Path) -> Path:
    """A site folder with every file."""
    case = next(iter(sorted((data_dir / "cases").glob("*.md")))).read_text(encoding="utf-8")
    name = case.split("id: ", 1)[1].split("\n", 1)[0].split("#")[0].strip()
    return write_site(tmp_path / "site", case.replace(f"id: {name}", "id: team-case", 1))


def test_a_site_folder_adds_and_replaces_nothing(site: Path, knowledge: Knowledge) -> None:
    """What is shipped stays as it is; what is added is marked as the team's."""
    both = with_site(knowledge, site)
    assert both.patterns[: len(knowledge.patterns)] == knowledge.patterns
    assert [(item.id, item.origin) for item in both.patterns[len(knowledge.patterns) :]] == [
        ("team-quobyte-stall", "site")
    ]
    assert [item.id for item in both.advice if item.origin] == ["TEAM_QB_TIMEOUT"]
    own, shipped = both.cause_by_id["checkpoint-io"], knowledge.cause_by_id["checkpoint-io"]
    assert own.fixes[:-1] == shipped.fixes
    assert (own.fixes[-1].id, own.fixes[-1].origin) == ("checkpoint-io/team-remount", "site")
    assert [page.url for page in own.runbooks] == ["https://wiki.example.com/storage"]
    assert both.case_by_id["team-case"].source_key == "site/cases/team-case.md"
    assert list(wrong_expressions(both)) == []


def test_every_change_of_the_folder_is_seen(site: Path, data_dir: Path, tmp_path: Path) -> None:
    """The digest covers the folder: the cache never gives what stood there before."""
    cache = tmp_path / "cache"
    first = load_knowledge(data_dir, cache=cache, site=site)
    assert load_knowledge(data_dir, cache=cache, site=site) == first
    (site / "hosts.yaml").unlink()
    second = load_knowledge(data_dir, cache=cache, site=site)
    assert (len(first.hosts), len(second.hosts)) == (1, 0)
    assert len({first.digest, second.digest, load_knowledge(data_dir).digest}) == 3


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("patterns.yaml", "event: storage", "event: storrage", "patterns.yaml: event of team-qu"),
        ("patterns.yaml", "checkpoint-io:", "checkpoint-oi:", "did you mean 'checkpoint-io'?"),
        ("patterns.yaml", "2.5", "25000.5", "checkpoint-io: 25000.5 is no weight"),
        ("patterns.yaml", "2.5", ".nan", "nan is no weight"),
        ("patterns.yaml", "kind: root", "kind: rot", "line 4: [team-quobyte-stall].kind: 'rot'"),
        ("patterns.yaml", "id: team-quobyte-stall", "id: PATTERN", "that of the shipped knowledge"),
        ("patterns.yaml", "\\S+ stalled'\n  cap", "(?=x)stalled'\n  cap", "team-quobyte-stall"),
        ("patterns.yaml", "(?P<volume>\\S+)", "(?P<volume>\\S+)(?!x)", "no expression of RE2"),
        ("patterns.yaml", "vol7 stalled", "vol7 hangs", "does not find its example"),
        ("patterns.yaml", "vol7 done", "vol7 stalled", "finds its negative"),
        ("advice.yaml", "~[0-5]", "~(?!6)[0-5]", "value of TEAM_QB_TIMEOUT"),
        ("advice.yaml", "~[0-5]?[0-9]", "60", "value test '60' is not known"),
        ("advice.yaml", "id: TEAM_QB_TIMEOUT", "id: NCCL_DEBUG", "that of the shipped knowledge"),
        (
            "causes.yaml",
            "- id: checkpoint-io",
            "- id: checkpointing",
            "'checkpointing' is no cause",
        ),
        ("causes.yaml", "commands:", "comands:", "did you mean 'commands'?"),
        ("causes.yaml", "https://wiki", "javascript://wiki", "is no address"),
        ("hosts.yaml", "gpu-node-17", "gpu-node-*", "'gpu-node-*' is no host"),
        ("hosts.yaml", "2026-05-01", "2026-13-41", "hosts.yaml is not YAML"),
        (
            "notices.yaml",
            "[network-config]",
            "[network]",
            "causes of network-only: 'network' is no",
        ),
        ("notices.yaml", "2020-01-01", "2020-01-01\n  since: 2021-01-01", "is before since"),
        ("notices.yaml", "- id: long-over", "- id: network-only", "that of another entry"),
        ("notices.yaml", "- id: storage", "- !!python/object:os.system x: storage", "not YAML"),
        ("notices.yaml", "- id: storage", f"- {'[' * 5000}: storage", "notices.yaml"),
        ("cases/team-case.md", "## Symptom", "## Symptoms", "unknown section '## Symptoms'"),
    ],
)
def test_what_is_wrong_names_the_file(
    site: Path, knowledge: Knowledge, file: str, old: str, new: str, says: str
) -> None:
    """Opening fails with one clear error."""
    path = site / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    new = new.replace("PATTERN", knowledge.patterns[0].id)
    path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def opened() -> None:
        for error in wrong_expressions(with_site(knowledge, site)):
            raise error

    with pytest.raises(DataError) as refused:
        opened()
    assert says in str(refused.value)


def test_check_data_reads_the_folder(site: Path, data_dir: Path) -> None:
    """It says what is wrong there, as opening does."""
    path = site / "causes.yaml"
    path.write_text(path.read_text("utf-8").replace("commands:", "comands:", 1), "utf-8")
    (error,) = data_errors(data_dir, site)
    assert "did you mean 'commands'?" in str(error)


def test_a_misspelt_file_is_no_file_left_out(site: Path, knowledge: Knowledge) -> None:
    """Nobody has to wonder why nothing of `pattern.yaml` is found."""
    (site / "patterns.yaml").rename(site / "pattern.yaml")
    with pytest.raises(DataError, match=r"did you mean 'patterns\.yaml'\?"):
        with_site(knowledge, site)


def test_what_is_no_file_is_refused(tmp_path: Path, knowledge: Knowledge) -> None:
    """A folder that is missing, and a file that is a folder."""
    with pytest.raises(DataError, match="point TIMEOUT_KB_SITE at a folder"):
        with_site(knowledge, tmp_path / "none")
    (tmp_path / "hosts.yaml").mkdir()
    with pytest.raises(DataError, match=r"hosts\.yaml is no file"):
        with_site(knowledge, tmp_path)


def test_an_empty_folder_changes_nothing(tmp_path: Path, knowledge: Knowledge) -> None:
    """All files are optional."""
    assert with_site(knowledge, tmp_path) == knowledge


def test_hosts_are_named_exactly() -> None:
    """Whatever the case, with or without a domain; never a part of a name."""
    host = BadHost(name="Node-1", reason=Bilingual(zh="坏", en="bad"))
    names = ("node-1", "NODE-1.cluster.local", "node-11", "node", "xnode-1", "a.node-1")
    assert bad_hosts([host], names) == {host: ["node-1", "NODE-1.cluster.local"]}


def test_the_files_of_the_tests_are_all_there_are() -> None:
    """A file that a site folder gains gets its test here."""
    from kb.knowledge.site import SITE_FILES

    assert set(FILES) == set(SITE_FILES)
