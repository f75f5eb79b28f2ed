"""The cases and causes pages: all of an entry in both languages, as the command shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import click
import pytest
from markdown_it import MarkdownIt
from markupsafe import escape
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Expander

from app.inputs.contributions import delete
from app.render.escape import plain
from app.render.listing import render_entry
from app.web.views import cases as browse
from kb.errors import NotFoundError
from kb.knowledge.labels import Words
from kb.service import Service
from kb.types.entries import CauseClaim, Claim, Entry, Filters, Section, Tags
from kb.types.knowledge import Bilingual, Fix, Source
from kb.types.vocabulary import EntryKind, Language
from tests.app.samples import make_entry
from tests.app.web.conftest import OpenPage, address_of, codes_of, html_of, shown_text

CASE = "vllm-tp-gt-1-error-acs-enabled"
UNWRAPPED = 10_000  # columns
EVIL = "<img src=x onerror=alert(1)> **b** [x](http://evil.example) `c`"


@pytest.fixture
def imported(real: Service) -> Iterator[Entry]:
    """An imported incident whose every text is hostile, in English only, not resolved."""
    entry = replace(
        make_entry("incident-0123456789abcdef", "rank-crash", kind="incident"),
        language="en",
        title=Bilingual(zh=EVIL, en=EVIL),
        project=EVIL,
        url="javascript:alert(1)",
        status="unverified",
        causes=(
            CauseClaim(id="rank-crash", status="reported", source="javascript:alert(2)"),
            CauseClaim(id="shm-limits", status="contradicted"),
        ),
        fixes=(
            Fix(
                id="x/1",
                title=Bilingual(zh=EVIL, en=EVIL),
                steps=(Bilingual(zh=EVIL, en=EVIL),),
                commands=("echo `date`\nexit",),
                caution=Bilingual(zh=EVIL, en=EVIL),
                sources=("javascript:alert(3)", "https://example.org/fix"),
            ),
        ),
        tags=Tags(backend="nccl", hardware=(EVIL,), versions={"torch": EVIL}),
        signature=(EVIL,),
        sections=(
            Section(role="symptoms", title=EVIL, text=f"{EVIL}\n- {EVIL}", language="en"),
            Section(role="found", title="Log", text=f"```\n{EVIL}\n```\nafter", language="en"),
        ),
        claims=(Claim(about="cause", text=Bilingual(zh=EVIL, en=EVIL), status="contradicted"),),
        sources=(Source(url="https://example.org/a", confirms=EVIL), Source(url="ftp://x/y")),
        resolved=False,
        source_key="upload:hostile",
        digest="d" * 64,
    )
    real.store.upsert([entry])
    yield entry
    real.store.delete([entry.id])


# --- the list ----------------------------------------------------------------------------------


def test_pages_hold_every_entry_once(real: Service, open_page: OpenPage) -> None:
    """Turning all pages shows all entries, each once, in the order of their ids."""
    seen: list[str] = []
    page = open_page("cases")
    for number in range(1, browse.pages(real.store.count()) + 1):
        if number > 1:
            page.button(key="cases_next").click().run()
        assert f"{browse.ENTRIES * (number - 1) + 1}–" in html_of(page)
        seen += re.findall(r"<h3[^>]*><a href=\"[^\"]*id=([\w.-]+)", html_of(page))
    assert seen == real.store.ids()
    assert address_of(page)["p"] == [str(browse.pages(len(seen)))]


def test_a_page_behind_the_last_is_the_last(real: Service, open_page: OpenPage) -> None:
    """Entries may have been deleted since the address was sent."""
    last = browse.pages(real.store.count())
    page = open_page("cases", p="999")
    assert address_of(page) == {"p": [str(last)]}
    assert f"page {last} of {last}" in html_of(page)
    assert page.button(key="cases_next").disabled
    page.button(key="cases_previous").click().run()
    assert address_of(page) == {"p": [str(last - 1)]}


def test_kinds_can_be_chosen(imported: Entry, real: Service, open_page: OpenPage) -> None:
    """Imported entries stand in the list and can be had alone."""
    shown = html_of(open_page("cases", kind=["incident"]))
    count = len(real.store.ids(Filters(kinds=("incident",))))
    said = Words(real.knowledge.labels, "en")("page.span", first=1, last=count, total=count)
    assert said in shown
    assert f"id={imported.id}" in shown


@pytest.mark.parametrize(("total", "count"), [(0, 1), (1, 1), (25, 1), (26, 2), (273, 11)])
def test_number_of_pages(total: int, count: int) -> None:
    """Full pages and one with the rest; nothing is one empty page."""
    assert browse.pages(total) == count


# --- one case ----------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_case_is_whole(lang: Language, real: Service, open_page: OpenPage) -> None:
    """Every word `timeout-kb show` prints of a case stands on its page, commands to be copied."""
    entry = real.entry(CASE)
    page = open_page("cases", lang=lang, id=CASE)
    words = Words(real.knowledge.labels, lang)
    printed = click.unstyle(render_entry(entry, words, width=UNWRAPPED))
    labels = [expander.label for expander in page.expander]
    shown = " ".join([shown_text(html_of(page)), *codes_of(page), *labels])
    word = re.compile(r"\w+")
    missing = set(word.findall(printed)) - set(word.findall(shown))
    # the page names a cause by its title, where the command gives its id
    assert missing - {"p2p", "topology", "software", "version"} == set()
    commands = [command for fix in entry.fixes for command in fix.commands]
    assert [*commands, "\n".join(entry.signature)] == codes_of(page)


def test_both_languages_are_there(real: Service, open_page: OpenPage) -> None:
    """The switch changes title and sections, not the commands."""
    entry = real.entry(CASE)
    zh, en = (open_page("cases", lang=lang, id=CASE) for lang in ("zh", "en"))
    assert str(escape(entry.title.zh)) in html_of(zh)
    assert str(escape(entry.title.en)) in html_of(en)
    assert codes_of(zh) == codes_of(en)


def test_causes_have_their_standing_and_page(open_page: OpenPage) -> None:
    """Each cause of a case is a link, with how sure it is."""
    shown = html_of(open_page("cases", id=CASE))
    for cause in ("p2p-topology", "software-version"):
        assert re.search(rf'href="\./causes\?lang=en&amp;id={cause}"', shown)
    assert "reported" in shown_text(shown)


def test_an_imported_entry_cannot_act(imported: Entry, open_page: OpenPage) -> None:
    """Its texts are shown as they are: no tag, no foreign link, no Markdown, no script address."""
    page = open_page("cases", lang="zh", id=imported.id)
    shown = html_of(page)
    assert "<img" not in shown
    assert "javascript:" not in shown
    links = set(re.findall(r'href="([^"]*)"', shown))
    foreign = {link for link in links if not link.startswith("./")}
    assert foreign == {"https://example.org/a", "https://example.org/fix"}
    for expander in page.expander:
        tokens = MarkdownIt("commonmark").parseInline(expander.label)
        kinds = {child.type for token in tokens for child in token.children or []}
        assert kinds <= {"text", "text_special"}
    assert plain(EVIL) in codes_of(page)
    assert "echo `date`\nexit" in codes_of(page)


def test_an_entry_in_one_language_says_so(imported: Entry, open_page: OpenPage) -> None:
    """Where the text is not in the reader's language the other one is shown, with a note."""
    shown = html_of(open_page("cases", lang="zh", id=imported.id))
    assert "正文只有英文" in shown
    assert "未解决" in shown
    assert "after" in shown


def test_an_entry_that_is_not_there(open_page: OpenPage) -> None:
    """A stale link says so and leads back to the list."""
    shown = html_of(open_page("cases", id="<b>gone</b>"))
    assert "There is no entry &lt;b&gt;gone&lt;/b&gt;" in shown
    assert 'href="./cases?lang=en"' in shown


# --- the outcome of an incident ------------------------------------------------------------------


def test_an_incident_is_resolved_and_corrected_on_its_page(
    real: Service, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cause, fix, commands and link are written down later, with who did it, and can be changed."""
    monkeypatch.setattr("app.web.components.outcome_form.signed_in", lambda: "ada")
    open_one = make_entry("incident-00ff00ff00ff00ff", "shm-limits", kind="incident")
    open_one = replace(open_one, resolved=False, status="unverified", fixes=(), causes=())
    real.apply([open_one])
    page = open_page("cases", id=open_one.id)
    assert _box(page, "Write down cause and fix").proto.expanded
    page.button(key="resolve_entry").click().run()
    assert "Choose a cause" in html_of(page)
    assert not real.entry(open_one.id).resolved
    page.selectbox(key=f"resolve_cause{open_one.id}_en").set_value("checkpoint-io")
    page.text_area(key=f"resolve_fix{open_one.id}").input("Emptied `/scratch`")
    page.text_area(key=f"resolve_commands{open_one.id}").input("df -h\n\nrm -r /scratch/old")
    page.text_input(key=f"resolve_url{open_one.id}").input("https://example.org/wiki")
    page.button(key="resolve_entry").click().run()
    assert "Saved:" in html_of(page)
    assert _box(page, "Correct cause and fix").proto.expanded  # what was saved can be seen
    entry = real.entry(open_one.id)
    assert (entry.resolved, entry.resolved_by, entry.causes[0].id) == (True, "ada", "checkpoint-io")
    (fix,) = entry.fixes
    assert (fix.title.en, fix.sources) == ("Emptied `/scratch`", ("https://example.org/wiki",))
    assert fix.commands == ("df -h", "rm -r /scratch/old")

    page = open_page("cases", lang="zh", id=open_one.id)
    assert not _box(page, "修改根因和修法").proto.expanded
    assert page.selectbox(key=f"resolve_cause{open_one.id}_zh").value == "checkpoint-io"
    assert (
        page.text_area(key=f"resolve_commands{open_one.id}").value == "df -h\n\nrm -r /scratch/old"
    )
    page.selectbox(key=f"resolve_cause{open_one.id}_zh").set_value("rank-crash")
    page.button(key="resolve_entry").click().run()
    corrected = real.entry(open_one.id)
    assert [claim.id for claim in corrected.causes] == ["rank-crash"]
    assert corrected.fixes == (fix,)
    real.store.delete([open_one.id])


def _box(page: AppTest, label: str) -> Expander:
    (box,) = (box for box in page.expander if box.label == label)
    return box


@pytest.mark.parametrize("kind", ["case", "writeup"])
def test_only_incidents_have_an_outcome(
    real: Service, open_page: OpenPage, kind: EntryKind
) -> None:
    """A reviewed case changes in its file, and a write-up says itself how it ended."""
    entry = make_entry("writeup-0123456789abcdef", "rank-crash", kind="writeup")
    real.apply([entry])
    page = open_page("cases", id=CASE if kind == "case" else entry.id)
    assert [button.key for button in page.button] == ["delete_entry"] * (kind == "writeup")
    real.store.delete([entry.id])


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_incidents_that_are_one_are_merged_on_the_page(
    real: Service, open_page: OpenPage, lang: Language
) -> None:
    """Those of the same failure stand first; without a choice nothing happens."""
    words = Words(real.knowledge.labels, lang)
    ids = [f"incident-{digit * 16}" for digit in "abc"]
    causes = ("rank-crash", "gpu-hardware", "rank-crash")
    entries = [make_entry(i, cause, kind="incident") for i, cause in zip(ids, causes, strict=True)]
    real.apply(entries)
    page = open_page("cases", id=ids[0], lang=lang)
    page.button(key="merge_entry").click().run()
    assert words("page.say_merged") in html_of(page)
    choice = page.multiselect(key=f"merge_{ids[0]}")
    offered = [next(i for i in ids if i in option) for option in choice.options]
    assert offered == [ids[2], ids[1]]
    choice.set_value([ids[2]])
    page.button(key="merge_entry").click().run()
    assert words("page.merged") in html_of(page)
    assert real.entry(ids[2]).id == ids[0]
    assert real.entry(ids[0]).merged == (ids[2],)
    assert page.multiselect(key=f"merge_{ids[0]}").value == []
    page.multiselect(key=f"merge_{ids[0]}").set_value([ids[1]])
    page.button(key="merge_entry").click().run()
    assert words("page.merged") in html_of(page)  # also where no other is left to merge
    real.delete(ids)
    alone = make_entry(ids[0], "rank-crash", kind="incident")
    real.apply([alone])
    page = open_page("cases", id=ids[0], lang=lang)
    assert "merge_entry" not in [button.key for button in page.button]
    real.delete(ids)


# --- deleting -----------------------------------------------------------------------------------


def test_an_imported_entry_can_be_deleted(real: Service, open_page: OpenPage) -> None:
    """After the confirmation it is gone, the list says so, and the address names it no more."""
    entry = make_entry("incident-fedcba9876543210", "rank-crash", kind="incident")
    real.apply([entry])
    page = open_page("cases", id=entry.id)
    page.button(key="delete_entry").click().run()
    assert "Deleted." in html_of(page)
    assert address_of(page) == {}
    with pytest.raises(NotFoundError):
        real.entry(entry.id)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_deleted_entry_is_brought_back(real: Service, open_page: OpenPage, lang: str) -> None:
    """Right after it was deleted, or from its old address; once it is back nothing offers it."""
    entry = make_entry("incident-fedcba9876543210", "rank-crash", kind="incident")
    real.apply([entry])
    page = open_page("cases", id=entry.id, lang=lang)
    page.button(key="delete_entry").click().run()
    page.button(key="restore_entry").click().run()
    assert address_of(page) == {"id": [entry.id]}
    assert {"zh": "已恢复。", "en": "It is back."}[lang] in html_of(page)
    assert real.entry(entry.id).title == entry.title
    page.button(key="delete_entry").click().run()
    late = open_page("cases", id=entry.id, lang=lang)
    assert {"zh": "还可以恢复", "en": "can still be restored"}[lang] in html_of(late)
    late.button(key="restore_entry").click().run()
    assert real.entry(entry.id).title == entry.title
    assert "restore_entry" not in [button.key for button in late.button]
    delete(real, entry.id, for_good=True)
    gone = open_page("cases", id=entry.id, lang=lang)
    assert "restore_entry" not in [button.key for button in gone.button]


def test_a_reviewed_case_offers_no_deletion(real: Service, open_page: OpenPage) -> None:
    """Reviewed cases change in their files, so their page has no such button."""
    page = open_page("cases", id=CASE)
    assert str(escape(plain(real.entry(CASE).title.get("en")))) in html_of(page)
    assert [button for button in page.button if button.key == "delete_entry"] == []


# --- causes ------------------------------------------------------------------------------------
