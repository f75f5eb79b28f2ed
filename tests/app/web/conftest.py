"""What tests of the pages share: one real knowledge base, and pages that run in this process."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.web import context
from kb.bootstrap import open_service
from kb.chat.chat import Chat
from kb.service import Service
from kb.settings import Settings

RUN_S = 120  # a page takes a tenth of a second; a busy machine more

OpenPage = Callable[..., AppTest]


@pytest.fixture(scope="session")
def real(built_home: Callable[[], Path]) -> Iterator[Service]:
    """The shipped knowledge in a state folder of its own; tests that add to it clean up."""
    service = open_service(Settings(home=built_home()))
    yield service
    service.close()


@pytest.fixture
def open_page(real: Service, monkeypatch: pytest.MonkeyPatch) -> OpenPage:
    """Opens a page by its module's name, with the parameters of its address."""
    talk = Chat(real)
    monkeypatch.setattr(context, "_chat", lambda: talk)

    def opened(
        module: str, *, lang: str = "en", service: object = real, **address: str | list[str]
    ) -> AppTest:
        monkeypatch.setattr(context, "_service", lambda: service)
        test = AppTest.from_string(
            f"from app.web.views import {module}\n{module}.page()", default_timeout=RUN_S
        )
        for name, value in {"lang": lang, **address}.items():
            test.query_params[name] = value
        return test.run()

    return opened


def html_of(page: AppTest) -> str:
    """All HTML on a page, in order; fails where the page did."""
    assert not page.exception, page.exception
    return "\n".join(element.proto.body for element in page.get("html"))


def codes_of(page: AppTest) -> list[str]:
    """What can be copied from a page."""
    return [element.value for element in page.code]


def address_of(page: AppTest) -> dict[str, list[str]]:
    """The address after a run, without the language."""
    found = {
        name: [value] if isinstance(value, str) else list(value)
        for name, value in page.query_params.items()
    }
    return {name: values for name, values in found.items() if name != "lang"}


def forget_feedback(real: Service) -> None:
    """Take back what tests said, for those that count it."""
    with real.store.database.write() as connection:
        connection.execute("DELETE FROM feedback")


def shown_text(shown: str) -> str:
    """What a reader sees of HTML, on one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", shown).split())
