"""The search page: what is found and why, filters with counts, an address that says it all."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from markupsafe import escape

from app.render.listing import hit_snippet
from app.web import context
from app.web.components import filters
from app.web.components.filters import PAGE
from app.web.views import cases, search
from kb.knowledge.labels import Words
from kb.service import Service
from kb.text.language import detect_language
from kb.types.entries import Filters, Hit
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import Language
from tests.app.samples import make_entry
from tests.app.web.conftest import OpenPage, address_of, html_of

QUERY = "保存检查点时卡住"


def ids_of(shown: str) -> list[str]:
    """Ids of the entries a page links, in order, each once."""
    return list(dict.fromkeys(re.findall(r"\./cases\?lang=\w\w&amp;id=([\w.-]+)", shown)))


# --- what is found -----------------------------------------------------------------------------


def test_the_page_shows_what_the_service_finds(real: Service, open_page: OpenPage) -> None:
    """Same entries in the same order, with their score, and links to their pages."""
    shown = html_of(open_page("search", lang="zh", q=QUERY))
    found = real.search(QUERY, limit=PAGE)
    assert found.similar_enough
    assert ids_of(shown) == [hit.entry_id for hit in found.hits]
    assert re.findall(r"相似度 ([\d.]+)", shown) == [f"{hit.score:.2f}" for hit in found.hits]
    first = found.hits[0]
    assert str(escape(first.title.zh)) in shown
    assert real.entry(first.entry_id).date in shown


def test_filters_narrow_and_the_address_follows(real: Service, open_page: OpenPage) -> None:
    """Choosing a cause leaves entries of that cause, and the address can be sent."""
    page = open_page("search", q=QUERY)
    page.multiselect(key="search.cause").select("checkpoint-io").run()
    wanted = Filters(causes=("checkpoint-io",))
    expected = [hit.entry_id for hit in real.search(QUERY, filters=wanted, limit=PAGE).hits]
    assert ids_of(html_of(page)) == expected
    assert address_of(page) == {"q": [QUERY], "cause": ["checkpoint-io"]}
    again = open_page("search", q=QUERY, cause=["checkpoint-io"])
    assert ids_of(html_of(again)) == expected
    assert again.multiselect(key="search.cause").value == ["checkpoint-io"]


def test_counts_tell_what_another_value_adds(real: Service, open_page: OpenPage) -> None:
    """With a cause chosen the other causes keep their counts, other facets count what is left."""
    page = open_page("search", cause=["shm-limits"])
    everything = real.store.facets()
    left = real.store.facets(Filters(causes=("shm-limits",)))
    causes = page.multiselect(key="search.cause").options
    assert len(causes) == len(everything["cause"])
    backends = page.multiselect(key="search.backend").options
    assert backends == [f"{name} ({count})" for name, count in left["backend"].items()]


def test_several_values_of_one_facet_are_alternatives(real: Service, open_page: OpenPage) -> None:
    """Two stages find what either finds."""
    page = open_page("search", stage=["save", "load"])
    one, other = (len(real.store.ids(Filters(stages=(name,)))) for name in ("save", "load"))
    assert f"of {one + other} entries" in html_of(page)


def test_an_empty_question_lists(real: Service, open_page: OpenPage) -> None:
    """Without a question there are entries in the order of their ids, and more on demand."""
    page = open_page("search")
    everything = [entry.id for entry in real.entries(limit=2 * PAGE)]
    assert ids_of(html_of(page)) == everything[:PAGE]
    page.button[-1].click().run()
    assert ids_of(html_of(page)) == everything
    assert address_of(page) == {"n": [str(2 * PAGE)]}


def test_a_new_question_begins_at_the_top(open_page: OpenPage) -> None:
    """What was unfolded for one question does not stay unfolded for the next."""
    page = open_page("search", n="40")
    page.text_input(key="search.q").set_value("nccl").run()
    assert address_of(page) == {"q": ["nccl"]}


def test_nothing_similar_enough_is_said(real: Service, open_page: OpenPage) -> None:
    """A question of another field is told so, and what is nearest is shown as just that."""
    question = "how long do I bake a sourdough bread"
    assert not real.search(question).similar_enough
    shown = html_of(open_page("search", q=question))
    assert "Nothing similar enough. The closest:" in shown


def test_filters_nothing_passes(real: Service, open_page: OpenPage) -> None:
    """No result is an answer, not an empty page; it says what the filters hide."""
    shown = html_of(open_page("search", q=QUERY, cause=["shm-limits"], backend=["hccl"]))
    assert "No entry passes these filters" in shown
    assert ids_of(shown) == []
    total = sum(real.store.facets()["kind"].values())
    best = real.search(QUERY, limit=1).hits[0]
    assert f"The filters hide {total} of {total} entries." in shown
    assert f"the nearest is “{escape(best.title.en)}” ({best.score:.2f})" in shown


def test_a_value_nobody_has_is_refused(real: Service, open_page: OpenPage) -> None:
    """It is named as a text, filters nothing and leaves the address; known ones stay."""
    nasty = "<script>x</script>"
    page = open_page("search", q=QUERY, project=[nasty], stage=["save"], kind=["incident"])
    shown = html_of(page)
    assert "Project has no value “&lt;script&gt;x&lt;/script&gt;”" in shown
    assert shown.count("has no value") == 1  # there could be incidents, though there are none
    assert address_of(page) == {"q": [QUERY], "stage": ["save"], "kind": ["incident"]}
    listed = html_of(open_page("cases", backend=["no-such-backend"]))
    assert "Backend has no value “no-such-backend”" in listed
    assert len(ids_of(listed)) == cases.ENTRIES


@pytest.mark.parametrize("language", ["zh", "en"])
def test_pieces_are_in_the_language_of_the_reader(
    real: Service, open_page: OpenPage, language: Language
) -> None:
    """Whatever the language of the question and of what it matched."""
    for question in (QUERY, "hangs while saving a checkpoint"):
        shown = html_of(open_page("search", lang=language, q=question))
        pieces = re.findall(r'<p class="tk-faint">(.*?)</p></article>', shown)
        assert len(pieces) == PAGE
        assert {detect_language(piece) for piece in pieces if piece} == {language}


def test_clearing_the_filters(open_page: OpenPage) -> None:
    """One button takes all filters back and leaves the question."""
    page = open_page("search", q="nccl", cause=["shm-limits"], backend=["nccl"])
    (clear,) = [button for button in page.button if button.label == "Clear filters"]
    clear.click().run()
    assert address_of(page) == {"q": ["nccl"]}


@pytest.mark.parametrize("nasty", ["<script>alert(1)</script>", "**b** [x](http://evil)", "{q}"])
def test_what_somebody_typed_stays_text(nasty: str, open_page: OpenPage) -> None:
    """Neither question nor filter becomes HTML or fails."""
    shown = html_of(open_page("search", q=nasty, project=[nasty]))
    assert "<script>" not in shown
    assert not re.search(r'href="[^"]*evil', shown)
    assert "<b>b</b>" not in shown


def test_titles_of_imported_entries_stay_text(
    open_page: OpenPage, real: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Title, project, snippet and address of a hit come from anyone."""
    monkeypatch.setattr("app.web.context.language", lambda: "en")
    monkeypatch.setattr("app.web.context._service", lambda: real)
    evil = '"><img src=x onerror=alert(1)>'
    hit = Hit(
        entry_id=evil,
        kind="writeup",
        title=Bilingual(zh=evil, en=evil),
        project=evil,
        url="javascript:alert(1)",
        status="unverified",
        cause=evil,
        score=0.5,
        chunk_id="x#0",
        snippet=evil,
        why=(f"term:{evil}",),
    )
    entry = replace(make_entry("x", "rank-crash"), date=evil)
    shown = str(search.hit_card(hit, entry, Words(real.knowledge.labels, "en")))
    assert "<img" not in shown
    assert "javascript:" not in shown
    assert shown.count("&lt;img") >= 5


@pytest.mark.parametrize("title", ["卡住了", "It hangs"])
def test_a_snippet_does_not_repeat_the_title(title: str) -> None:
    """A piece of an entry begins with its title, in the language that was found in it."""
    hit = Hit(
        entry_id="x",
        kind="case",
        title=Bilingual(zh="卡住了", en="It hangs"),
        project="",
        url="",
        status="reported",
        cause="",
        score=0.5,
        chunk_id="x#0",
        snippet=f"{title} Ranks wait.",
        why=(),
    )
    assert hit_snippet(hit) == "Ranks wait."


def test_links_keep_the_language(open_page: OpenPage) -> None:
    """Links inside lead to pages in the language of this one."""
    shown = html_of(open_page("search", lang="zh", q=QUERY))
    inside = re.findall(r'href="(\./[^"]*)"', shown)
    assert inside
    assert all("lang=zh" in link for link in inside)


def test_a_link_with_several_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value of a parameter stands in the address, escaped."""
    monkeypatch.setattr(context, "language", lambda: "en")
    link = context.href("search", q="a b&c", cause=["x", "y"])
    assert link == "./search?lang=en&q=a+b%26c&cause=x&cause=y"


def test_the_session_knows_an_address_that_came_from_outside(open_page: OpenPage) -> None:
    """Following a link to the same page with other filters replaces the widgets' values."""
    page = open_page("search", q="nccl")
    page.query_params["q"] = "gloo"
    page.query_params["backend"] = "gloo"
    page.run()
    assert page.text_input(key="search.q").value == "gloo"
    assert page.multiselect(key=filters.key("search", "backend")).value == ["gloo"]


# --- what leads elsewhere ------------------------------------------------------------------------


def test_a_suggestion_is_asked_for(open_page: OpenPage) -> None:
    """Operations, settings, causes and titles are offered; the one chosen becomes the question."""
    page = open_page("search", lang="en")
    offered = page.selectbox(key="search.suggested")
    assert {"ALLREDUCE", "NCCL_IB_TIMEOUT"} <= set(offered.options)
    offered.select("NCCL_IB_TIMEOUT").run()
    assert page.text_input(key="search.q").value == "NCCL_IB_TIMEOUT"
    assert page.selectbox(key="search.suggested").value is None
    assert address_of(page)["q"] == ["NCCL_IB_TIMEOUT"]


def test_the_newest_can_come_first(real: Service, open_page: OpenPage) -> None:
    """The same hits by date, and the address says so; each hit names how much it covers."""
    shown = html_of(open_page("search", lang="en", q=QUERY, o="newest"))
    hits = real.search(QUERY, limit=PAGE).hits
    dates = {hit.entry_id: real.entry(hit.entry_id).date for hit in hits}
    assert ids_of(shown) == sorted(dates, key=dates.__getitem__, reverse=True)
    assert shown.count("of what was asked") == len(hits)


def test_a_pasted_log_is_offered_for_diagnosis(open_page: OpenPage) -> None:
    """The button stands where lines of software were pasted, and not beside words."""
    log = (
        "[rank1]: RuntimeError: lost the shard[rank0]:[E311 02:52:03.118 ProcessGroupNCCL.cpp:607]"
    )
    assert any(one.key == "diagnose_question" for one in open_page("search", q=log).button)
    assert not any(one.key == "diagnose_question" for one in open_page("search", q=QUERY).button)
