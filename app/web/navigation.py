"""The pages by their address; each is imported when somebody opens it."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import streamlit as st

from kb.knowledge.labels import Words

PAGES = {
    "": ("app.web.views.diagnose", "page.diagnose"),
    "chat": ("app.web.views.chat", "page.chat"),
    "board": ("app.web.views.board", "page.board"),
    "search": ("app.web.views.search", "page.search"),
    "cases": ("app.web.views.cases", "page.cases"),
    "causes": ("app.web.views.causes", "page.causes"),
    "notes": ("app.web.views.notes", "page.notes"),
    "quality": ("app.web.views.quality", "page.quality"),
}


@functools.cache
def _runner(module: str) -> Callable[[], None]:
    """The page's function, always the same object: Streamlit tells pages apart by it."""

    def run() -> None:
        importlib.import_module(module).page()

    run.__name__ = module.rpartition(".")[2]
    return run


def page(path: str, words: Words) -> Any:  # noqa: ANN401 - st.Page
    """The page under an address, for `st.navigation`, `st.page_link` and `st.switch_page`."""
    module, label = PAGES[path]
    return st.Page(_runner(module), title=words(label), url_path=path, default=not path)
