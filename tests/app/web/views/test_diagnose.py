"""The diagnose page as a person uses it: the real script with the real knowledge base."""

from __future__ import annotations

import gzip
import io
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app.inputs.contributions import read_feedback
from app.render import head, present
from app.render.errors import error_sentence
from app.render.escape import plain_block
from app.render.markdown import render_markdown
from app.render.short import render_short
from app.web import context
from app.web.components import answer_head, answer_state
from app.web.components.log_view import Window
from app.web.views.diagnose import EXAMPLES, STATE
from kb.errors import InputError
from kb.knowledge.labels import Words
from kb.saved import save_diagnosis
from kb.settings import Settings
from kb.types.answer import MetBefore
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.service import Service

SCRIPT = Path(context.__file__).with_name("main.py")
WATCHDOG = (
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=14217, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) "
    "ran for 600029 milliseconds before timing out.\n"
)
LOG = (
    "step 100 loss 2.5\n"
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    + WATCHDOG.format(rank=1)
)
DISK_LOG = (
    "[rank3]: OSError: [Errno 28] No space left on device: '/scratch/ckpt-812'\n"
    + WATCHDOG.format(rank=1)
)
ALL = "0.0.0.0"  # noqa: S104 - an address in a command, none to listen on
PICTURE = b"\x89PNG\r\n\x1a\n" + b"\0" * 64
VAGUE = "训练卡住了，日志里只有 NCCL 超时，不知道为什么"
HOSTILE = (
    "<script>alert(1)</script> ![x](http://evil.example/x.png) [a](javascript:alert(1)) $$x^2$$ "
    "\x1b[31mred\x1b[0m :material/home: "
)


@pytest.fixture(scope="module", autouse=True)
def home(built_home: Callable[[], Path]) -> Iterator[Path]:
    """A state folder of this module's own, named by the environment as for a user."""
    folder = built_home()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIMEOUT_KB_HOME", str(folder))
        st.cache_resource.clear()
        yield folder
        context.service().close()
        st.cache_resource.clear()


@pytest.fixture
def service() -> Service:
    """The service the page itself works with."""
    return context.service()


def visit(*, lang: Language = "en", **parameters: str) -> AppTest:
    """A new session on the page."""
    page = AppTest.from_file(str(SCRIPT), default_timeout=120)
    for name, value in {"lang": lang, **parameters}.items():
        page.query_params[name] = value
    return page.run()


def diagnose(text: str, *, lang: Language = "en") -> AppTest:
    """A session that pasted `text` and pressed the button."""
    page = visit(lang=lang)
    page.text_area(key="paste").input(text)
    return page.button(key="run").click().run()


def html_of(page: AppTest) -> str:
    """All HTML on the page, the style sheet aside."""
    assert not page.exception
    bodies = [element.proto.body for element in page.get("html")]
    return "\n".join(body for body in bodies if not body.startswith("<style"))


def text_of(page: AppTest) -> str:
    """What is read in the page's HTML."""
    import html

    return html.unescape(re.sub(r"<[^>]+>", "", html_of(page)))


def one(value: str | list[str]) -> str:
    """A query parameter that stands once."""
    if isinstance(value, str):
        return value
    (single,) = value
    return single


def words_of(page: AppTest, language: Language) -> Words:
    """The labels the page uses."""
    assert not page.exception
    return Words(context.service().knowledge.labels, language)


def test_the_page_says_what_the_service_says(service: Service) -> None:
    """Headline, first fix, certainty, evidence, fixes and cases are the service's, in order."""
    page = diagnose(LOG)
    answer = service.diagnose_text(LOG, language="en")
    words = words_of(page, "en")
    text = text_of(page)
    assert f">{answer.headline}</h1>" in html_of(page)
    lead = answer.causes[0]
    assert answer.first_fix is not None
    assert answer.incident.first_error is not None
    parts_in_order = [
        f"{words('head.fix')} {answer.first_fix.title}",
        f"{present.cause_share(lead)}, {words.term('band', lead.band)}",
        f"{lead.title} — line 2: {lead.evidence[0].reason}",
        "rank 3, line 2",
        answer.incident.first_error.text,
        f"1. {lead.title}",
        lead.evidence[1].reason,
        lead.fixes[0].steps[0],
        present.culprits(answer.incident, words)[0].removeprefix("rank 3: "),
        *(case.title for case in head.cases_not_met(answer)[:1]),
    ]
    places = []
    start = 0
    for part in parts_in_order:
        start = text.index(part, start)
        places.append(start)
    assert places == sorted(places)
    commands = [box.value for box in page.code]
    assert (
        commands[1] == answer.first_fix.command.strip()
    )  # the form above is folded, with the API's line
    for fix in lead.fixes:
        assert set(map(plain_block, fix.commands)) <= set(commands)
    labels = [box.label for box in page.expander]
    for fix in lead.fixes[1:]:  # a folded fix says how sure it is beside its title
        standing = words.term("claim", fix.status)
        assert any(fix.title in label and standing in label for label in labels), fix.title
    assert [case.title for case in answer.cases if case.title not in text] == []


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_no_sentence_is_said_twice(service: Service, name: str, lang: Language) -> None:
    """What the head says is not said again: first fix and caution nowhere, reason not of its cause.

    The title of the cause is its name and stands above its section again; other causes and the
    timeline, which are folded, have reasons and moments of their own.
    """
    text = (service.settings.data / "examples" / name).read_text(encoding="utf-8")
    page = diagnose(text, lang=lang)
    answer = page.session_state[STATE].answers[lang]
    step, lead = answer.first_fix, answer.causes[0]
    shown = text_of(page) + "\n".join(box.label for box in page.expander)
    assert shown.count(step.title) == 1
    assert not step.caution or shown.count(step.caution) == 1
    first_cause = shown.partition(present.restart_advice(lead, words_of(page, lang)))[0]
    assert first_cause.splitlines().count(answer.headline) == 1
    strongest = head.strongest(lead)
    if strongest.quote in head.culprit_line(answer, words_of(page, lang))[1]:
        assert first_cause.count(strongest.reason) == 1
    assert answer.summary not in shown
    boxes = [box.value for box in page.code]
    assert boxes.count(plain_block(step.command).strip()) == (1 if step.command else 0)
    quotes = re.findall(r'<code class="tk-quote">(.*?)</code>', html_of(page))
    assert quotes.count(quotes[0]) == 1


def test_the_head_is_never_green() -> None:
    """A job that died is no success: however sure the cause, no tone of success is in the head."""
    answer = diagnose(LOG).session_state[STATE].answers["en"]
    assert answer.causes[0].band == "certain"
    tones = {
        answer_head.tone(replace(answer, causes=(replace(answer.causes[0], band=band),)))
        for band in ("certain", "likely", "possible", "unlikely")
    }
    assert tones == {"sure", "likely", "possible", "quiet"}
    assert answer_head.tone(replace(answer, status="unknown")) == "quiet"


def test_an_incident_met_before_stands_in_the_head(service: Service) -> None:
    """When it was met, what helped, how it is alike and differs; other people's words as text."""
    words = Words(service.knowledge.labels, "en")
    met = MetBefore(
        entry="incident-1",
        kind="incident",
        when="2026-05-03",
        title="rank 3's disk was full <b>",
        cause="checkpoint-io",
        fix="emptied `/scratch`",
        command="df -h",
        url="javascript:alert(1)",
        why=("same first error",),
        differs=("another stage",),
    )
    answer = replace(service.diagnose_text(LOG, language="en"), met_before=met)
    shown = str(answer_head.met_before_html(answer, words))
    assert "<b>Your team met this on 2026-05-03:</b>" in shown
    assert (
        "rank 3&#39;s disk was full &lt;b&gt;</a>; what helped: emptied <code>/scratch</code>"
        in shown
    )
    assert "<code>df -h</code>" in shown
    assert "id=incident-1" in shown
    assert "javascript" not in shown
    assert "same first error" in shown
    assert "another stage" in shown
    assert answer_head.met_before_html(replace(answer, met_before=None), words) == ""
    undated = replace(answer, met_before=replace(met, when=""))
    assert "<b>Your team met this before:</b>" in str(answer_head.met_before_html(undated, words))
    first = replace(answer.first_fix, title=met.fix, command=met.command)
    above = str(answer_head.met_before_html(replace(answer, first_fix=first), words))
    assert "scratch" not in above  # it is what is to be done first
    assert "df -h" not in above


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_what_the_team_wrote_down_is_what_to_do_first(service: Service, lang: Language) -> None:
    """From one page to the next: said once, as what helped the team, without an empty box."""
    log = f"deepspeed.initialize: DeepSpeedEngine, zero stage 3\n{LOG}"
    page = diagnose(log)
    page.selectbox(key="resolve_cause_en").set_value("rank-crash")
    page.text_area(key="resolve_fix").input("Halved the micro batch")
    page.button(key="record").click().run()
    entry = service.entry(page.session_state[STATE].entry)
    page = diagnose(log.replace("step 100", "step 300"), lang=lang)
    words, shown = words_of(page, lang), text_of(page)
    service.delete([entry.id])
    when = entry.resolved_on[:10]
    assert f"{words('head.helped_on', when=when)} Halved the micro batch" in shown
    assert words("head.team_met_on", when=when) in shown
    assert words("head.fix") not in shown
    assert shown.count("Halved the micro batch") == 1
    labels = [box.label for box in page.expander]
    assert not [label for label in labels if label.startswith(words("page.first_fix"))]
    assert not [label for label in labels if "Halved" in label]


def test_evidence_stands_with_the_lines_around_it() -> None:
    """The lines of the log near an evidence are shown with their numbers, the error marked."""
    page = diagnose(LOG)
    (window,) = page.session_state[STATE].windows
    assert isinstance(window, Window)
    assert [(line.number, line.mark) for line in window.lines] == [
        (1, ""),
        (2, "error"),
        (3, "evidence"),
    ]
    content = html_of(page)
    assert '<div class="tk-line tk-mark-error"><span class="tk-no">2</span>' in content
    assert "lines around it" in content


def test_the_other_language_is_a_press_away(service: Service) -> None:
    """Switching keeps the paste and shows the same causes in the other language's words."""
    page = diagnose(LOG)
    page.button_group(key="language_switch").set_value("zh").run()
    answer = service.diagnose_text(LOG, language="zh")
    assert answer.headline in text_of(page)
    assert page.text_area(key="paste").value == LOG
    assert one(page.query_params["lang"]) == "zh"


@pytest.mark.parametrize(
    ("lang", "tagline"), [("zh", "根因、证据、修法"), ("en", "cause, evidence, fix")]
)
def test_the_address_names_the_language(lang: Language, tagline: str) -> None:
    """A link with `lang` opens in that language."""
    assert tagline in text_of(visit(lang=lang))


@pytest.mark.parametrize("text", ["", "   \n\t"], ids=["nothing", "blanks"])
def test_an_empty_paste_is_told_what_to_do(text: str) -> None:
    """No answer and no failure, but a sentence; the form stays."""
    page = diagnose(text)
    assert words_of(page, "en")("page.nothing") in text_of(page)
    assert "tk-verdict" not in html_of(page)
    assert page.text_area(key="paste").label.startswith("Log")


def test_a_hostile_paste_is_shown_as_text() -> None:
    """HTML, Markdown, formulas, icons and escapes of a log do nothing on the page."""
    page = diagnose(HOSTILE + LOG.replace("CUDA out", HOSTILE + "CUDA out"))
    content = html_of(page)
    assert "<script" not in content
    assert "<img" not in content
    assert 'href="javascript' not in content
    assert "\x1b" not in content
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in content
    assert len(page.markdown) == 0
    labels = [box.label for box in page.expander] + [box.label for box in page.button]
    assert not [label for label in labels if "evil" in label or "$$" in label]


def test_a_secret_is_on_the_page_of_nobody() -> None:
    """What is shown of the log is redacted."""
    page = diagnose(LOG.replace("step 100", "password=hunter2hunter2 step 100"))
    assert "hunter2" not in html_of(page)
    assert "redacted" in html_of(page)


@pytest.mark.parametrize(
    ("text", "status"), [(VAGUE, "unknown"), ("epoch 1 done, accuracy 0.9", "no_timeout")]
)
def test_no_verdict_is_an_answer(service: Service, text: str, status: str) -> None:
    """It asks one question, says what to collect before any cause, and shows cases alike."""
    page = diagnose(text, lang="zh")
    answer = service.diagnose_text(text, language="zh")
    assert answer.status == status
    words = words_of(page, "zh")
    shown = text_of(page)
    assert answer.headline in shown
    question = words("page.which" if status == "unknown" else "page.no_timeout_help")
    assert shown.count("？") == question.count("？") == 1
    assert question in shown
    commands = [box.value for box in page.code]
    assert [step.command for step in answer.next if step.command not in commands] == []
    assert [case.title for case in answer.cases if case.title not in shown] == []
    if answer.causes:
        assert answer.best_check is not None
        assert answer.best_check.outcomes[0] in shown
        assert shown.index(words("heading.next")) < shown.index(words("heading.causes"))


def test_the_check_that_decides_comes_before_the_others(service: Service) -> None:
    """Also where one cause leads: on a phone as well, what stands first is read first."""
    text = (service.settings.data / "examples" / "rank-behind.log").read_text(encoding="utf-8")
    page = diagnose(text)
    words = words_of(page, "en")
    shown = text_of(page)
    assert shown.index(words("heading.best_check")) < shown.index(words("heading.next"))


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_is_one_press(service: Service, name: str) -> None:
    """Each fills the box and is diagnosed; all name a cause first that fits their story."""
    fits = {
        "rank-out-of-memory.log": "rank-crash",
        "rank-behind.log": "collective-mismatch",
        "save-on-rank0.log": "checkpoint-io",
        "ascend-link-setup.log": "network-config",
        "words-only.txt": "collective-mismatch",
    }
    page = visit()
    page.button(key=f"example_{name}").click().run()
    text = (service.settings.data / "examples" / name).read_text(encoding="utf-8")
    assert page.text_area(key="paste").value == text
    answer = page.session_state[STATE].answers["en"]
    assert answer.causes[0].id == fits[name]
    assert f"1. {answer.causes[0].title}" in text_of(page)


def test_every_example_file_has_a_button(service: Service) -> None:
    """Files and buttons are the same set."""
    files = {path.name for path in (service.settings.data / "examples").iterdir()}
    assert files == set(EXAMPLES)


def test_a_kept_diagnosis_opens_by_its_link(service: Service) -> None:
    """The link shows the stored answer in either language, with its time, without the log."""
    page = diagnose(LOG)
    page.button(key="keep").click().run()
    identifier = one(page.query_params["d"])
    assert any(box.value.endswith(f"?d={identifier}") for box in page.code)
    for lang in ("zh", "en"):
        opened = visit(lang=lang, d=identifier)
        kept = opened.session_state[STATE].saved
        assert kept.answer(lang).headline in text_of(opened)
        assert re.search(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", text_of(opened))
        assert 'class="tk-no"' not in html_of(opened)


@pytest.mark.parametrize(
    ("base", "warned"), [("http://127.0.0.1:8501", True), ("https://kb.example.org/t", False)]
)
def test_a_link_of_this_machine_says_so(
    service: Service, monkeypatch: pytest.MonkeyPatch, base: str, warned: bool
) -> None:
    """Whoever is about to send an address that nobody else can open is told."""
    settings = replace(service.settings, public_url=base)
    monkeypatch.setattr(service, "settings", settings)
    page = diagnose(LOG)
    page.button(key="keep").click().run()
    assert any(box.value.startswith(f"{base}/?d=") for box in page.code)
    assert (words_of(page, "en")("page.kept_local") in text_of(page)) is warned


def test_the_language_of_a_link_holds_on() -> None:
    """The menu's links carry no language: the one a session began with stays."""
    page = visit(lang="zh")
    del page.query_params["lang"]
    page.run()
    assert words_of(page, "zh")("page.lead") in text_of(page)
    assert words_of(page, "en")("page.lead") not in text_of(page)


def test_settings_alone_are_judged_at_the_top() -> None:
    """Without a timeout the judgement of the settings comes before what to collect."""
    page = diagnose("export NCCL_TIMEOUT=3600")
    words = words_of(page, "en")
    shown = text_of(page)
    assert shown.count(words("heading.warnings")) == 1
    assert shown.index("NCCL_TIMEOUT=3600") < shown.index(words("page.no_timeout_help"))


@pytest.mark.parametrize(
    ("lang", "said"),
    [
        ("zh", "没有编号为 nothing-here 的诊断，可能已被删除请检查链接，或重新诊断那份日志。"),
        ("en", "There is no diagnosis nothing-here; it may have been deleted"),
    ],
)
def test_a_link_to_nothing_says_so(lang: Language, said: str) -> None:
    """An unknown id gives a message in the page's language and the form."""
    page = visit(lang=lang, d="nothing-here")
    assert said in text_of(page)
    assert "tk-verdict" not in html_of(page)
    assert page.text_area(key="paste").value in ("", None)


def test_a_new_diagnosis_leaves_the_link(service: Service) -> None:
    """After opening a link, what is pasted is answered, and the address no longer names the old."""
    kept = save_diagnosis(service, service.judge(service.read_text(LOG)))
    page = visit(d=kept.id)
    page.text_area(key="paste").input("OSError: [Errno 28] No space left on device\n" + LOG)
    page.button(key="run").click().run()
    assert "d" not in page.query_params
    assert "No space left" in text_of(page)


def test_one_press_judges_the_answer_and_adds_the_incident(service: Service) -> None:
    """Nothing is stored before it; a cause without a fix is kept, and the incident stays open."""
    page = diagnose(LOG)
    words = words_of(page, "en")
    before, incidents = len(read_feedback(service)), len(service.incidents())
    page.selectbox(key="resolve_cause_en").set_value("memory-pressure").run()
    assert (len(read_feedback(service)), len(service.incidents())) == (before, incidents)
    page.button(key="record").click().run()
    assert words("page.fix_open") in text_of(page)
    state = page.session_state[STATE]
    last = read_feedback(service)[-1]
    assert (last.feedback.verdict, last.feedback.actual, last.source) == (
        "wrong",
        "memory-pressure",
        "web",
    )
    assert (last.feedback.cause, last.feedback.entry) == (
        state.answers["en"].causes[0].id,
        state.entry,
    )
    entry = service.entry(state.entry)
    assert (entry.resolved, [cause.id for cause in entry.causes]) == (False, ["memory-pressure"])
    page.button(key="record").click().run()
    assert len(read_feedback(service)) == before + 1  # the same once more is not counted again
    service.delete([entry.id])


def test_the_causes_of_the_answer_are_offered_first(service: Service) -> None:
    """Then all others by name, and a field for what is none of them."""
    page = diagnose(LOG)
    box = page.selectbox(key="resolve_cause_en")
    causes = [cause.id for cause in page.session_state[STATE].answers["en"].causes]
    named = [option.rpartition(" · ")[2] for option in box.options]
    assert named[: len(causes)] == causes
    assert box.options[-1] == words_of(page, "en")("page.something_else")
    rest = box.options[len(causes) : -1]
    assert rest == sorted(rest)
    assert set(named[:-1]) == set(service.knowledge.cause_by_id)


@pytest.mark.parametrize("fix", ["", "Swapped the riser"], ids=["open", "resolved"])
def test_a_cause_in_a_persons_own_words_is_kept(service: Service, fix: str) -> None:
    """It stands on the incident, search finds it, and the form has it again by the link."""
    page = diagnose(DISK_LOG)
    words = words_of(page, "en")
    assert not [field for field in page.text_input if field.key == "resolve_own_cause"]
    page.selectbox(key="resolve_cause_en").set_value("something_else").run()
    page.text_area(key="resolve_fix").input(fix)
    page.button(key="record").click().run()
    assert words("page.say_cause") in text_of(page)
    page.text_input(key="resolve_own_cause").input("a bent riser of the quokka rack")
    page.button(key="record").click().run()
    entry = service.entry(page.session_state[STATE].entry)
    assert (entry.own_cause, entry.causes) == ("a bent riser of the quokka rack", ())
    assert entry.resolved is bool(fix)
    assert words("page.own_cause_kept" if fix else "page.fix_open") in text_of(page)
    assert "You said on" in text_of(page)
    assert entry.id in {hit.entry_id for hit in service.search("bent riser quokka rack").hits}
    last = read_feedback(service)[-1].feedback
    assert (last.verdict, last.actual) == ("wrong", "")
    assert last.comment.splitlines() == list(filter(None, [entry.own_cause, fix]))
    service.delete([entry.id])


def test_words_alone_are_judged_though_they_are_no_incident(service: Service) -> None:
    """What cannot be added is said, and what was said of the answer is kept."""
    page = diagnose("After torchrun starts, rank 3 went out of memory and the others hang.")
    causes = page.session_state[STATE].answers["en"].causes
    assert causes
    before = len(read_feedback(service))
    page.selectbox(key="resolve_cause_en").set_value(causes[0].id).run()
    page.button(key="record").click().run()
    assert read_feedback(service)[before:][0].feedback.verdict == "right"
    assert page.session_state[STATE].entry == ""
    assert "no timeout" in text_of(page)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_feedback_is_changed_and_taken_back(
    service: Service, monkeypatch: pytest.MonkeyPatch, lang: Language
) -> None:
    """Also from the link and in another tab: the form holds what was said, which counts once."""
    monkeypatch.setattr("app.web.components.answer_actions.person", lambda: f"browser {lang}")
    before = len(read_feedback(service))
    page = diagnose(LOG, lang=lang)
    words = words_of(page, lang)
    assert "feedback_take_back" not in [button.key for button in page.button]
    cause, other = (each.id for each in page.session_state[STATE].answers[lang].causes[:2])
    page.selectbox(key=f"resolve_cause_{lang}").set_value(cause).run()
    page.button(key="record").click().run()
    kept = save_diagnosis(service, service.judge(service.read_text(LOG)))
    linked = visit(lang=lang, d=kept.id)
    assert linked.selectbox(key=f"resolve_cause_{lang}").value == cause
    assert service.knowledge.cause_by_id[cause].title.get(lang) in text_of(linked)
    linked.selectbox(key=f"resolve_cause_{lang}").set_value(other).run()
    linked.button(key="record").click().run()
    (stored,) = read_feedback(service)[before:]
    assert (stored.feedback.verdict, stored.feedback.diagnosis) == ("wrong", kept.id)
    linked.button(key="feedback_take_back").click().run()
    assert words("page.taken_back") in text_of(linked)
    assert len(read_feedback(service)) == before
    assert linked.selectbox(key=f"resolve_cause_{lang}").value is None
    assert "feedback_take_back" not in [button.key for button in linked.button]
    service.delete([stored.feedback.entry])


def test_who_is_signed_in_has_one_word_on_an_answer(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a proxy that names people the last word of one counts; two people have two."""
    before = len(read_feedback(service))
    for name, at in (("ada", 1), ("ada", 0), ("bob", 1)):
        monkeypatch.setattr("app.web.recent_answers.signed_in", lambda name=name: name)
        page = diagnose(LOG)
        causes = page.session_state[STATE].answers["en"].causes
        page.selectbox(key="resolve_cause_en").set_value(causes[at].id).run()
        page.button(key="record").click().run()
    said = [stored.feedback.verdict for stored in read_feedback(service)[before:]]
    assert sorted(said) == ["right", "wrong"]


@pytest.mark.parametrize(
    ("header", "headers", "name"),
    [
        ("X-Forwarded-Email", {"X-Forwarded-Email": "ada@example.org\x1b[31m"}, "ada@example.org"),
        ("X-Forwarded-Email", {}, ""),
        ("", {"X-Forwarded-Email": "ada@example.org"}, ""),
    ],
    ids=["set", "absent", "not asked for"],
)
def test_a_name_comes_from_the_header_of_the_settings_alone(
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    header: str,
    headers: dict[str, str],
    name: str,
) -> None:
    """Without the setting nobody is believed; a name is plain text on one line."""
    settings = replace(service.settings, login_header=header)
    monkeypatch.setattr(service, "settings", settings)
    visitor = SimpleNamespace(context=SimpleNamespace(headers=headers))
    monkeypatch.setattr(context, "st", visitor)
    assert context.signed_in().startswith(name)
    assert "\x1b" not in context.signed_in()
    assert bool(context.signed_in()) is bool(name)


def test_slack_is_offered_where_a_channel_is_set(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The button posts the short form; without a channel there is no button."""
    posted: list[str] = []
    monkeypatch.setattr("app.slack.posting.post_text", lambda _settings, text: posted.append(text))
    page = diagnose(LOG)
    assert "slack" not in [button.key for button in page.button]
    token = "xoxb-1"  # noqa: S105 - of the test alone
    settings = replace(service.settings, slack_bot_token=token, slack_channel="C0123")
    monkeypatch.setattr(service, "settings", settings)
    page.run()
    page.button(key="slack").click().run()
    answer = page.session_state[STATE].answers["en"]
    assert posted == [render_short(answer, words_of(page, "en"))]
    assert words_of(page, "en")("page.posted") in text_of(page)


def test_an_incident_is_written_down_and_resolved(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Adding stores the redacted log; cause and fix make it a confirmed entry that search finds."""
    monkeypatch.setattr("app.web.components.outcome_form.signed_in", lambda: "ada")
    page = diagnose("token hf_abcdefghijklmnopqrstuvwxyz012345\n" + LOG)
    words = words_of(page, "en")
    page.button(key="record").click().run()
    entry_id = page.session_state[STATE].entry
    entry = service.entry(entry_id)
    assert entry.kind == "incident"
    assert "hf_abc" not in str(entry)
    page.text_area(key="resolve_fix").input("Halved the micro batch of rank zebrafish")
    page.button(key="record").click().run()
    assert words("page.say_cause") in text_of(page)
    page.selectbox(key="resolve_cause_en").set_value("rank-crash")
    page.text_area(key="resolve_commands").input("nvidia-smi\n\n \nexport A=1 \\\n  B=2")
    page.button(key="record").click().run()
    assert words("page.resolved") in text_of(page)
    resolved = service.entry(entry_id)
    assert (resolved.status, resolved.causes[0].id) == ("confirmed", "rank-crash")
    assert resolved.resolved_by == "ada"
    assert resolved.fixes[0].commands == ("nvidia-smi", "export A=1 \\\n  B=2")
    found = service.search("micro batch of rank zebrafish")
    assert entry_id in {hit.entry_id for hit in found.hits}


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_changed_site_folder_is_told(
    service: Service, monkeypatch: pytest.MonkeyPatch, lang: Language
) -> None:
    """The page says that a restart is due, and nothing where none is."""
    text = Words(service.knowledge.labels, lang)("page.site_waits")
    assert text not in text_of(visit(lang=lang))
    monkeypatch.setattr(service, "site_waits", lambda: True)
    assert text in text_of(visit(lang=lang))


def test_the_next_log_begins_with_empty_forms() -> None:
    """What was said of one incident is not carried to another."""
    page = diagnose(LOG)
    label = words_of(page, "en")("page.what_was_it")
    assert not _unfolded(page, label)
    page.selectbox(key="resolve_cause_en").set_value("rank-crash").run()
    page.text_area(key="resolve_fix").input("Emptied /scratch")
    page.button(key="record").click().run()
    assert _unfolded(page, label)
    page.text_area(key="paste").input(DISK_LOG)
    page.button(key="run").click().run()
    assert not _unfolded(page, label)
    assert page.selectbox(key="resolve_cause_en").value is None
    assert page.text_area(key="resolve_fix").value == ""


def _unfolded(page: AppTest, label: str) -> bool:
    (box,) = (box for box in page.expander if box.label == label)
    return bool(box.proto.expanded)


def test_downloads_are_the_answer(service: Service) -> None:
    """Both files stand beside the answer, and the short form and Markdown can be copied."""
    page = diagnose(LOG)
    labels = [element.proto.label for element in page.get("download_button")]
    assert labels == ["Download Markdown", "Download JSON"]
    answer, words = service.diagnose_text(LOG, language="en"), words_of(page, "en")
    texts = [box.value for box in page.code]
    assert plain_block(render_short(answer, words)).strip() in texts
    shown = page.session_state[STATE].answers["en"]
    assert plain_block(render_markdown(shown, words)).strip() in texts


def test_a_version_that_is_none_is_told() -> None:
    """A wrong torch version is named, in the language chosen then too; the form stays."""
    page = visit()
    page.text_area(key="paste").input(LOG)
    page.text_input(key="torch").input("newest")
    page.button(key="run").click().run()
    assert "'newest' is not a version" in text_of(page)
    assert "tk-verdict" not in html_of(page)
    page.button_group(key="language_switch").set_value("zh").run()
    assert "“newest”不是版本号" in text_of(page)


def test_an_unexpected_failure_is_short_and_logged(
    monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    """The page names the kind of failure and nothing of its content; the log has it."""

    def broken() -> None:
        raise RuntimeError("a path of the machine: /secret")

    monkeypatch.setattr("app.web.views.diagnose.page", broken)
    page = visit()
    assert "RuntimeError" in text_of(page)
    assert "/secret" not in text_of(page)
    assert [line["event"] for line in logged if line["log_level"] == "error"] == ["page failed"]


# --- files -------------------------------------------------------------------------------------

Read = Callable[..., answer_state.AnswerState]


@pytest.fixture
def read(service: Service) -> Read:
    """Reads a paste and files as the page does."""

    def go(text: str = "", **files: bytes) -> answer_state.AnswerState:
        uploads: list[Any] = [
            (name.replace("__", "."), io.BytesIO(data)) for name, data in files.items()
        ]
        return answer_state.diagnose_input(service, text=text, uploads=uploads, language="en")

    return go


def test_files_are_one_run(read: Read) -> None:
    """Names tell ranks, compressed files are read, and the windows name the file."""
    found = read(
        rank0__log=WATCHDOG.format(rank=0).encode(),
        rank3__log__gz=gzip.compress(b"ok\ntorch.OutOfMemoryError: CUDA out of memory.\n"),
    )
    first = found.answers["en"].incident.first_error
    assert first is not None
    assert (first.rank, first.line, first.file) == (3, 2, "rank3.log.gz")
    marked = [
        (window.file, line.number)
        for window in found.windows
        for line in window.lines
        if line.mark == "error"
    ]
    assert marked == [("rank3.log.gz", 2)]
    assert found.names == ("rank0.log", "rank3.log.gz")


def test_one_file_answers_as_the_same_text_pasted(read: Read) -> None:
    """Uploading and pasting are two ways to say the same."""
    pasted, uploaded = read(LOG), read(job__log=LOG.encode())
    one, other = pasted.answers["en"], uploaded.answers["en"]
    assert [cause.id for cause in one.causes] == [cause.id for cause in other.causes]
    assert [line for window in uploaded.windows for line in window.lines] == [
        line for window in pasted.windows for line in window.lines
    ]


def test_too_much_is_sent_to_the_api(service: Service) -> None:
    """Beyond the limit of all of it together the message has the command that takes any size."""
    settings = Settings(max_body=1024)
    answer_state.check_size("x" * 1000, [("a.log", io.BytesIO(b"y" * 24))], settings)
    with pytest.raises(InputError, match=r"curl http://127\.0\.0\.1:8000/v1/diagnose"):
        answer_state.check_size("x" * 1000, [("a.log", io.BytesIO(b"y" * 25))], settings)
    two: list[Any] = [(name, io.BytesIO(b"y" * 700_000)) for name in ("a.log", "b.log")]
    with pytest.raises(InputError) as refused:
        answer_state.check_size("", two, Settings(max_body=answer_state.MIB))
    said = error_sentence(refused.value, Words(service.knowledge.labels, "en"))
    assert "are 1.3 MiB; this page takes 1.0 MiB" in said
    assert answer_state.api_command(Settings()) in said


@pytest.mark.parametrize(("lang", "said"), [("zh", "共不超过 64 MiB"), ("en", "64 MiB in all")])
def test_the_limit_is_told_as_it_is(lang: Language, said: str) -> None:
    """Text and files together are counted, in MiB, and so says the box for files."""
    page = visit(lang=lang)
    styles = [element.proto.body for element in page.get("html")]
    assert any(said in style for style in styles if style.startswith("<style"))


@pytest.mark.parametrize(
    ("host", "url", "shown"),
    [
        ("10.0.0.5", "http://kb:8501/", "10.0.0.5"),
        ("::1", "http://[::1]:8501/", "[::1]"),
        (ALL, "http://kb:8501/?lang=zh", "kb"),
        (ALL, "http://10.0.0.5:8501/", "10.0.0.5"),
        ("::", "http://[2001:db8::1]:8501/", "[2001:db8::1]"),
        (ALL, None, socket.gethostname()),
    ],
)
def test_the_command_for_the_api_names_a_host_that_can_be_reached(
    host: str, url: str | None, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All addresses are none: then it is the one the visitor came to; IPv6 stands in brackets."""
    monkeypatch.setattr(st, "context", SimpleNamespace(url=url))
    command = answer_state.api_command(Settings(host=host, port=8000))
    assert command.split()[1] == f"http://{shown}:8000/v1/diagnose"


def test_a_binary_upload_is_refused_with_its_name(read: Read) -> None:
    """The person learns which file is no log."""
    with pytest.raises(InputError, match=r"photo\.png"):
        read(photo__png=PICTURE)


def upload(page: AppTest, files: dict[str, bytes]) -> AppTest:
    """Choose files and press the button."""
    chosen = [(name, content, "application/octet-stream") for name, content in files.items()]
    page.file_uploader(key="files").set_value(chosen)
    return page.button(key="run").click().run()


@pytest.mark.parametrize(
    ("lang", "said"),
    [
        ("zh", "文件 photo.png 是图片，不是文本日志请把图片里的日志以文本形式粘贴进来。"),
        ("en", "photo.png is a picture, not a text logPaste the log in it as text."),
    ],
)
def test_an_unreadable_upload_is_told_in_words_of_the_page(lang: Language, said: str) -> None:
    """The message names the visitor's file, no folder of the server and no option of a command."""
    page = upload(visit(lang=lang), {"photo.png": PICTURE})
    text = text_of(page)
    assert said in text
    assert not [word for word in ("timeout-kb-", "/log/", "--dump") if word in text]


@pytest.mark.parametrize(
    ("lang", "said"),
    [("zh", "未能读取photo.png：是图片，不是文本日志"), ("en", "Not readphoto.png: is a picture")],
)
def test_a_file_left_out_is_told_beside_the_answer(lang: Language, said: str) -> None:
    """The others are read; which one was not and why stands among what happened."""
    page = upload(visit(lang=lang), {"rank3.log": LOG.encode(), "photo.png": PICTURE})
    assert "rank-crash" in html_of(page)
    assert said in text_of(page)


def test_stacks_are_evidence_beside_the_log(read: Read, root: Path) -> None:
    """py-spy files are told by their content and name the rank that stands elsewhere."""
    folder = root / "tests" / "lab" / "samples" / "rank0_preprocessing" / "evidence"
    for kind in ("stacks", "dumps"):
        files = sorted((folder / kind).iterdir())
        found = read(**{path.name.replace(".", "__"): path.read_bytes() for path in files})
        answer = found.answers["en"]
        assert [culprit.rank for culprit in answer.incident.culprit_ranks] == [0], kind
        assert answer.causes[0].id == "rank0-long-work", kind
