"""`%%timeout_kb` in a notebook: what IPython does with it, and what a browser would."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from markdown_it import MarkdownIt

from app import jupyter
from app.jupyter import NotebookAnswer, TimeoutMagic
from kb.service import Service

OOM = "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
WATCHDOG = (
    "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=14217, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 ms\n"
)
HOSTILE = (
    "[rank0]: ValueError: <img src=x onerror=alert(1)> [x](javascript:alert(1)) `</code><script>`\n"
    "[rank0]: RuntimeError: </details><script>alert(1)</script> $$\\href{javascript:1}{x}$$\n"
)
OWN_TAGS = re.compile(r"</?(?:details|summary)>")


class SharedService:
    """The service of all tests, which a magic does not close."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.closed = 0

    def close(self) -> None:
        """Count."""
        self.closed += 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)


@pytest.fixture
def shared(real: Service) -> SharedService:
    """The real service."""
    return SharedService(real)


@pytest.fixture
def magic(shared: SharedService) -> TimeoutMagic:
    """The magic over the real service."""
    return TimeoutMagic(cast("Callable[[], Service]", lambda: shared))


def markdown_of(answer: NotebookAnswer | None) -> str:
    """What a notebook shows."""
    assert answer is not None
    return answer._repr_mimebundle_()["text/markdown"]


def test_the_cell_is_diagnosed(magic: TimeoutMagic) -> None:
    """In the language asked for; the value is there for the next cell."""
    answer = magic("--lang zh", OOM + WATCHDOG)
    assert answer is not None
    assert answer.diagnosis.causes[0].id == "rank-crash"
    assert answer.diagnosis.causes[0].title in repr(answer)
    assert "显存" in markdown_of(answer)


def test_files_are_diagnosed(magic: TimeoutMagic, tmp_path: Path) -> None:
    """Names with spaces are quoted, as in IPython's own magics."""
    (tmp_path / "a b.log").write_text(OOM + WATCHDOG)
    answer = magic(f"'{tmp_path}/a b.log' --top 1")
    assert answer is not None
    assert len(answer.diagnosis.causes) == 1


@pytest.mark.parametrize("log", [HOSTILE, HOSTILE + OOM + WATCHDOG], ids=["words", "diagnosed"])
def test_nothing_of_the_log_is_rendered_as_html(magic: TimeoutMagic, log: str) -> None:
    """A renderer that passes HTML on meets no tag and no address of a script but ours."""
    tokens = (
        MarkdownIt("commonmark", {"html": True})
        .enable("table")
        .parse(markdown_of(magic("--lang en", log)))
    )
    flat = [item for token in tokens for item in (token, *(token.children or ()))]
    raw = "".join(item.content for item in flat if item.type in ("html_inline", "html_block"))
    assert re.findall(r"<[^>]*>?", OWN_TAGS.sub("", raw)) == []
    links = [str(item.attrGet("href")) for item in flat if item.type == "link_open"]
    assert all(link.startswith(("https://", "http://")) for link in links)
    assert [item for item in flat if item.type == "image"] == []


@pytest.mark.parametrize(
    ("line", "cell", "said"),
    [
        ("--lang fr", "x", "invalid choice"),
        ("", None, "%timeout_kb reads files"),
        ("a.log", "x", "%timeout_kb reads files"),
        ("'a", None, "No closing quotation"),
        ("/nowhere/x.log", None, "x.log"),
        ("", " ", "error: "),
    ],
)
def test_what_is_wrong_is_told_in_a_line(
    magic: TimeoutMagic, capsys: pytest.CaptureFixture[str], line: str, cell: str | None, said: str
) -> None:
    """Without a traceback and without ending the kernel."""
    assert magic(line, cell) is None
    assert said in capsys.readouterr().err


@pytest.fixture
def shell(shared: SharedService, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """IPython as a kernel runs it."""
    interactive = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    monkeypatch.setattr(jupyter, "_open_service", lambda: shared)
    yield interactive()
    interactive.clear_instance()


def test_ipython_loads_runs_and_unloads_it(shell: Any, shared: SharedService) -> None:
    """As the text at the top of the module says."""
    shell.run_line_magic("load_ext", "app.jupyter")
    result = shell.run_cell(f"%%timeout_kb --lang en\n{OOM}{WATCHDOG}")
    assert result.success
    assert result.result.diagnosis.causes[0].id == "rank-crash"
    shown, _ = shell.display_formatter.format(result.result)
    assert shown["text/markdown"] == markdown_of(result.result)
    assert "rank-crash" in shown["text/plain"]
    shell.run_line_magic("unload_ext", "app.jupyter")
    assert shared.closed == 1
    assert not shell.run_cell("%timeout_kb x.log").success
