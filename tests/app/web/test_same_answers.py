"""The page names the causes every other face names, in their order."""

from __future__ import annotations

import html
import re

import pytest

from app.present import percent
from kb.service import Service
from tests.app.inputs import INPUTS
from tests.app.web.conftest import OpenPage, html_of

TITLES = re.compile(r'class="tk-title">(\d+)\. ([^<]+)</span>')


@pytest.mark.parametrize("name", INPUTS)
def test_the_page_shows_the_causes_of_the_service(
    real: Service, open_page: OpenPage, name: str
) -> None:
    """What a person reads on the page is what `diagnose_text` says, cause by cause."""
    diagnosis = real.diagnose_text(INPUTS[name], language="en")
    page = open_page("diagnose")
    page.text_area(key="paste").input(INPUTS[name])
    page.button(key="run").click().run()
    found = TITLES.findall(html_of(page))
    titles = [(int(number), html.unescape(title)) for number, title in found]
    assert sorted(titles) == [
        (number, cause.title) for number, cause in enumerate(diagnosis.causes, start=1)
    ]
    shown = html.unescape(html_of(page))
    assert all(percent(cause.probability) in shown for cause in diagnosis.causes)
