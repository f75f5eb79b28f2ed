"""The causes page: every cause with its cases, and all that is known of one."""

from __future__ import annotations

import re

import pytest
from markupsafe import escape

from app.render.escape import plain
from kb.knowledge.labels import Words
from kb.service import Service
from kb.types.entries import Filters
from kb.types.vocabulary import Language
from tests.app.web.conftest import OpenPage, codes_of, html_of, shown_text


def test_all_causes_stand_there_with_their_cases(real: Service, open_page: OpenPage) -> None:
    """Every cause in the order of the file, with the number of its reviewed cases."""
    shown = html_of(open_page("causes"))
    causes = real.knowledge.causes
    assert re.findall(r"<code>([\w-]+)</code>", shown) == [cause.id for cause in causes]
    for cause in causes:
        count = len(real.store.ids(Filters(causes=(cause.id,), kinds=("case",))))
        assert f"cause={cause.id}&amp;kind=case" in shown
        assert f">{count} cases</a>" in shown


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_cause_is_whole(lang: Language, real: Service, open_page: OpenPage) -> None:
    """Signs, fixes with their standing, folded too, checks, what to collect, and cases of it."""
    cause = real.knowledge.cause_by_id["collective-mismatch"]
    page = open_page("causes", lang=lang, id=cause.id)
    shown = shown_text(html_of(page))
    said = [*cause.shows, *cause.confirms, *cause.refutes, cause.definition, cause.restart_reason]
    said += [step for fix in cause.fixes for step in fix.steps]
    said += [check.tells for check in cause.checks] + [item.why for item in cause.collect]
    said += [outcome.observation for check in cause.checks for outcome in check.outcomes]
    squeezed = shown.replace(" ", "")
    for text in said:
        wanted = str(escape(plain(text.get(lang).replace("`", "")))).replace(" ", "")
        assert wanted in squeezed
    commands = [command for fix in cause.fixes for command in fix.commands]
    commands += [check.command for check in cause.checks]
    commands += [item.command for item in cause.collect]
    assert [command.strip("\n") for command in commands] == codes_of(page)
    words = Words(real.knowledge.labels, lang)
    standings = [words.term("claim", fix.status) for fix in cause.fixes]
    assert [fold.label.rpartition(" · ")[2] for fold in page.expander] == standings


def test_a_cause_that_is_not_there(open_page: OpenPage) -> None:
    """A misspelt address leads to the list of causes."""
    shown = html_of(open_page("causes", lang="zh", id="nope"))
    assert "没有编号为 nope 的根因" in shown
    assert 'href="./causes?lang=zh"' in shown
