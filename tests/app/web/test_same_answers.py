"""The page names the causes every other face names, in their order."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.render.escape import md_text
from kb.diagnose.wording import percent
from kb.service import Service
from kb.types.answer import Diagnosis
from kb.types.vocabulary import Language
from tests.app.face_inputs import FILE_SETS, INPUTS
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
    compare(page, diagnosis)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", FILE_SETS)
def test_the_page_reads_files_as_every_face_does(
    real: Service, open_page: OpenPage, tmp_path: Path, name: str, language: Language
) -> None:
    """Uploads are logs and evidence by their content; the page has no field for dumps."""
    contents = FILE_SETS[name].files | FILE_SETS[name].dumps
    for file, content in contents.items():
        (tmp_path / file).write_bytes(content)
    diagnosis = real.answer(
        real.read_paths([tmp_path / file for file in contents]), language=language
    )
    page = open_page("diagnose", lang=language)
    page.file_uploader(key="files").set_value(
        [(file, content, "application/octet-stream") for file, content in contents.items()]
    )
    page.button(key="run").click().run()
    compare(page, diagnosis)


def compare(page: AppTest, diagnosis: Diagnosis) -> None:
    """The page has the causes of the diagnosis, in their order, with their probabilities.

    The first one is unfolded; of the others the label says which they are.
    """
    body = html_of(page)
    titles = [(int(number), html.unescape(title)) for number, title in TITLES.findall(body)]
    assert titles == [(number, cause.title) for number, cause in enumerate(diagnosis.causes[:1], 1)]
    labels = [item.label for item in page.expander if item.label[:1].isdigit()]
    assert [label.split(" · ")[1] for label in labels] == [
        md_text(cause.title) for cause in diagnosis.causes[1:]
    ]
    shown = html.unescape(body + " ".join(labels))
    assert all(percent(cause.probability) in shown for cause in diagnosis.causes)
