"""Pictures and figures of eight kinds of answer: ``python -m tests.browser.first_screen``.

Each kind is asked in both languages and shown at 1280 and at 390 pixels, light and dark. A row
is printed for each language and width; the pictures go to ``artefacts/first_screen``. What must
hold of every one of them `test_first_screen.py` tests.
"""

from __future__ import annotations

import json
import tempfile
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kb.settings import shipped_data
from tests.app.face_inputs import RECORDER
from tests.browser.visits import (
    QUIET_MS,
    STILL,
    Site,
    Visit,
    browser,
    chromium_path,
    new_context,
    running,
)

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "artefacts" / "first_screen"
MEASURE = (Path(__file__).parent / "measure.js").read_text(encoding="utf-8")
WIDTHS = {1280: 800, 390: 844}  # pixels: the height of such a screen, which is the fold
PARTS = {  # of the head, in the order a person reads them
    "headline": ".tk-verdict .tk-h1",
    "first step": ".tk-first",
    "certainty": ".tk-certainty",
    "culprit": ".tk-error .tk-quote, .tk-culprit",
    "copy": ".st-key-copy button",
}
RERUN = ("[rank2]: torch.OutOfMemoryError", "10-11 03:5", "Tried to allocate 7.31 GiB")
HEADER = ("kind", "language", "width", *(f"{name} px" for name in PARTS), "words", "beyond")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is pasted, or the files that are handed in; `earlier` is resolved before."""

    text: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    earlier: str = ""


def failure_log(identifier: str) -> str:
    """One of the logs of ``tests/quality/failure_logs.jsonl``."""
    path = ROOT / "tests" / "quality" / "failure_logs.jsonl"
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return str(next(row["log"] for row in rows if row["id"] == identifier))


def kinds() -> dict[str, Asked]:
    """The eight kinds; the one met before comes last, for it changes what the team knows."""
    memory = (shipped_data() / "examples" / "rank-out-of-memory.log").read_text(encoding="utf-8")
    refused = ROOT / "tests" / "samples" / "negatives" / "train-shape-mismatch.log"
    crash = failure_log("f40")
    return {
        "memory": Asked(text=memory),
        "mismatch": Asked(text=failure_log("f35")),
        "uneven": Asked(text=failure_log("f60")),
        "network": Asked(text=failure_log("f46")),
        "unknown": Asked(text=failure_log("f05")),
        "refused": Asked(text=refused.read_text(encoding="utf-8")),
        "dumps": Asked(files=RECORDER),
        "met": Asked(text=crash.replace("18800", "20133"), earlier=crash),
    }


def resolve_earlier(site: Site, log: str) -> None:
    """Add a log as an incident of the team's, with its cause and what helped."""
    ids = _post(site, "entries", {"text": log, "name": "earlier.log"})["ids"]
    outcome = {
        "cause": "rank-crash",
        "fix": "Clamp token ids to the size of the embedding in the collator",
        "commands": ["python check_ids.py --shards data/ --vocab 50304"],
    }
    _post(site, f"entries/{ids[0]}/resolve", outcome)


def _post(site: Site, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - the site's own address
        f"{site.api}/v1/{path}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - the same
        return dict(json.load(answer))


def ask(here: Visit, asked: Asked) -> None:
    """Open the page, hand in what is asked, and wait for the answer to stand."""
    if asked.files:
        here.page.locator("input[type=file]").first.set_input_files(
            [
                {"name": name, "mimeType": "application/octet-stream", "buffer": content}
                for name, content in asked.files.items()
            ]
        )
        last = list(asked.files)[-1]
        here.page.locator("[data-testid=stFileChip]").filter(has_text=last).wait_for()
        here.page.locator(".st-key-run button").click()
        here.verdict.wait_for()
        here.settle()
    else:
        here.diagnose(asked.text)


def resize(here: Visit, width: int, *, dark: bool = False) -> None:
    """Take a width and a theme, and wait until the page stands."""
    here.page.set_viewport_size({"width": width, "height": WIDTHS[width]})
    here.page.emulate_media(color_scheme="dark" if dark else "light")
    here.page.wait_for_function(STILL, arg=QUIET_MS)
    here.page.evaluate("document.querySelector('.stMain').scrollTo(0, 0)")


def measure(here: Visit) -> dict[str, Any]:
    """Where the parts of the head end, and how many words stand above the fold."""
    return dict(here.page.evaluate(MEASURE, PARTS))


def show(site: Site, launched: Any, report: Callable[[tuple[object, ...]], None]) -> None:
    """Ask every kind in both languages, take the pictures and report each row."""
    for name, asked in kinds().items():
        if asked.earlier:
            resolve_earlier(site, asked.earlier)
        for language in ("en", "zh"):
            context = new_context(launched, language=language)
            here = Visit(page=context.new_page(), site=site, screens=FOLDER)
            here.open()
            ask(here, asked)
            for width in WIDTHS:
                for dark in (False, True):
                    resize(here, width, dark=dark)
                    theme = "dark" if dark else "light"
                    here.page.screenshot(path=FOLDER / f"{name}-{language}-{width}-{theme}.png")
                found = measure(here)
                ends = [found["ends"][part] for part in PARTS]
                report((name, language, width, *ends, found["count"], found["overflow"]))
                for text in found["twice"]:
                    report(("twice:", text[:160]))
            context.close()


def main() -> None:
    """Start a site, ask and show everything, and end it.

    Raises:
        SystemExit: Chromium is not installed.
    """
    path = chromium_path()
    if path is None:
        raise SystemExit("needs Chromium (Debian's package chromium)")
    FOLDER.mkdir(parents=True, exist_ok=True)

    def report(row: tuple[object, ...]) -> None:
        print(*("–" if cell is None else cell for cell in row), sep="\t", flush=True)  # noqa: T201

    report(HEADER)
    with (
        tempfile.TemporaryDirectory() as home,
        running(Path(home)) as site,
        browser(path) as launched,
    ):
        show(site, launched, report)


if __name__ == "__main__":
    main()
