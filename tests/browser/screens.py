"""Makes the README's pictures: `python -m tests.browser.screens`.

Both show the answer to the same shipped example, one in each language.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from kb.settings import shipped_data
from tests.browser.visits import DESKTOP, Visit, browser, chromium_path, new_context, running

FOLDER = Path(__file__).parent / "screens"
EXAMPLE = "rank-out-of-memory.log"
HEIGHT = 1000  # pixels: verdict, first cause, its evidence and the beginning of the fixes


def main() -> None:
    """Start a site, take both pictures, and end it.

    Raises:
        SystemExit: Chromium is not installed.
    """
    path = chromium_path()
    if path is None:
        raise SystemExit("needs Chromium (Debian's package chromium)")
    FOLDER.mkdir(exist_ok=True)
    log = (shipped_data() / "examples" / EXAMPLE).read_text(encoding="utf-8")
    with (
        tempfile.TemporaryDirectory() as home,
        running(Path(home)) as site,
        browser(path) as launched,
    ):
        for language in ("en", "zh"):
            context = new_context(launched, language=language)
            visit = Visit(page=context.new_page(), site=site, screens=FOLDER)
            visit.page.set_viewport_size({"width": DESKTOP["width"], "height": HEIGHT})
            visit.open()
            visit.diagnose(log)
            visit.page.locator(".stVegaLiteChart canvas, .stVegaLiteChart svg").first.wait_for()
            visit.page.locator(".st-key-tk_top").hover()  # away from what lights up under a mouse
            visit.page.screenshot(path=FOLDER / f"page-{language}.png")
            context.close()


if __name__ == "__main__":
    main()
