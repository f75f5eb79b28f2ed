"""The causes page: every cause with its cases, and all that is known of one."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from markupsafe import escape

from app.render.escape import plain
from kb.knowledge.labels import Words
from kb.service import Service
from kb.types.entries import Filters
from kb.types.knowledge import Bilingual, Runbook, TeamNotice
from kb.types.vocabulary import Language
from tests.app.web.conftest import OpenPage, codes_of, html_of, shown_text


def both(text: str) -> Bilingual:
    """The same text in both languages."""
    return Bilingual(zh=text, en=text)


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


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_what_the_team_adds_to_a_cause(
    lang: Language, real: Service, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runbooks as links and the notices about it, not those about another cause."""
    title, url = both("When storage stalls"), "https://wiki.example.com/storage"
    cause = real.knowledge.cause_by_id["checkpoint-io"]
    site = replace(cause, runbooks=(Runbook(title=title, url=url),))
    notices = tuple(
        TeamNotice(id=cause, text=both(f"note on {cause} <b>"), causes=(cause,))
        for cause in ("checkpoint-io", "network-config")
    )
    causes = tuple(site if cause.id == site.id else cause for cause in real.knowledge.causes)
    knowledge = replace(real.knowledge, causes=causes, notices=notices)
    monkeypatch.setattr(real, "knowledge", knowledge)
    shown = html_of(open_page("causes", lang=lang, id="checkpoint-io"))
    words = Words(real.knowledge.labels, lang)
    assert f"{words('site.notice')}" in shown
    assert "note on checkpoint-io &lt;b&gt;" in shown
    assert "note on network-config" not in shown
    assert 'href="https://wiki.example.com/storage"' in shown


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_an_outcome_of_a_check_is_said_once(
    lang: Language, real: Service, open_page: OpenPage
) -> None:
    """What it supports and what it speaks against stand behind one observation."""
    cause = real.knowledge.cause_by_id["collective-mismatch"]
    page = shown_text(html_of(open_page("causes", lang=lang, id=cause.id))).replace(" ", "")
    outcomes = [outcome for check in cause.checks for outcome in check.outcomes]
    assert any(outcome.supports and outcome.refutes for outcome in outcomes)
    for outcome in outcomes:
        text = plain(outcome.observation.get(lang).replace("`", ""))
        alike = [each for each in outcomes if each.observation == outcome.observation]
        assert page.count(f"{escape(text)} →".replace(" ", "")) == len(alike)


def test_a_cause_that_is_not_there(open_page: OpenPage) -> None:
    """A misspelt address leads to the list of causes."""
    shown = html_of(open_page("causes", lang="zh", id="nope"))
    assert "没有编号为 nope 的根因" in shown
    assert 'href="./causes?lang=zh"' in shown
