"""What a person reads of a diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.cells import cell_len

from app.render import present
from app.render.escape import plain
from app.render.markdown import render_markdown
from app.render.one_screen import render_screen
from app.render.present import duration, rank_span
from app.render.terminal import render_ranks, render_text
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis
from kb.types.incident import RankState
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import AdviceVerdict, Language

if TYPE_CHECKING:
    from kb.service import Service

Labels = dict[str, Bilingual]
NASTY = st.text(
    alphabet=st.one_of(
        st.sampled_from("`*_[]<>()#!|~$&\\-+=:.\n\r\t\x1b\x9b\x07 \u202e\u2028 1aw/{}"),
        st.characters(),
    ),
    max_size=40,
)
UNHURRIED = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=60,
    deadline=None,  # a busy machine is no failure
)


def text_of(diagnosis: Diagnosis, labels: Labels, *, width: int = 100) -> str:
    """All of the terminal text without colours."""
    words = Words(labels, diagnosis.language)
    return click.unstyle(render_text(diagnosis, words, width=width))


def screen_of(diagnosis: Diagnosis, labels: Labels, *, width: int = 100) -> str:
    """The screen of text that is shown unless all is asked for, without colours."""
    words = Words(labels, diagnosis.language)
    return click.unstyle(render_screen(diagnosis, words, width=width))


def markdown_of(diagnosis: Diagnosis, labels: Labels) -> str:
    """The Markdown."""
    return render_markdown(diagnosis, Words(labels, diagnosis.language))


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        (
            "gpu_stall",
            {"zh": "有 GPU 停住，发出的操作没有做完", "en": "a GPU stopped finishing work"},
        ),
        ("unknown", None),
        ("", None),
    ],
)
def test_a_fault_is_said_in_words(
    diagnosis: Diagnosis, labels: Labels, fault: str, shown: dict[str, str] | None
) -> None:
    """What the ranks' records show is no code, and no row where they do not decide."""
    incident = replace(diagnosis.incident, fault_type=fault)
    for language in get_args(Language):
        words = Words(labels, language)
        rows = dict(present.facts(incident, words))
        assert rows.get(words("row.fault")) == (shown[language] if shown else None)


def test_a_cause_that_is_named_is_possible(diagnosis: Diagnosis) -> None:
    """What the engine rounds to nothing is little, not impossible."""
    rounded = replace(diagnosis.causes[1], probability=0.0)
    causes = (diagnosis.causes[0], rounded)
    assert [present.cause_share(cause) for cause in causes] == ["70%", "<1%"]


def test_answer_first(diagnosis: Diagnosis, labels: Labels) -> None:
    """What happened, then what to do first, then culprit, error and facts."""
    lines = text_of(diagnosis, labels).splitlines()
    assert lines[:5] == [
        "Rank 3 ran out of GPU memory",
        "",
        "Do first",
        "  → Use less memory  [confirmed]",
        "    1. Halve the batch",
    ]
    at = lines.index("Culprit      rank 3: last enqueued 14216, others wait")
    assert lines[at + 1] == "First error  rank 3, line 2, cuda-oom"
    assert lines[at + 2].endswith(
        "│ torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    )
    assert lines[at + 3] == "What hung    ALLREDUCE, seq 14217, numel 1, process group default_pg"
    assert lines[at + 4] == "Timeout      10 min (600000 ms), ran 10 min"
    assert lines[at + 5] == "Ranks        reporting 0-2, 4-7 · not reporting 3 · 8 in all"
    assert lines.index("Causes") > at


def test_what_the_culprit_itself_hangs_in_is_told(diagnosis: Diagnosis, labels: Labels) -> None:
    """A rank that waits elsewhere than the others is shown with its own operation and number."""
    incident = diagnosis.incident
    own = RankState(rank=3, state="behind", last_op="BROADCAST", last_seq=14216, numel_in=8)
    (apart,) = present.culprits(replace(incident, ranks=(own,)), Words(labels, "en"))
    assert apart.endswith("; it hangs in BROADCAST, seq 14216, numel 8 itself")
    same = replace(own, last_op=incident.op, last_seq=incident.seq)
    (together,) = present.culprits(replace(incident, ranks=(same,)), Words(labels, "en"))
    assert "itself" not in together


@pytest.mark.parametrize("render", [text_of, markdown_of])
def test_a_piece_of_a_quote_told_is_not_told_again(
    render: Callable[..., str], diagnosis: Diagnosis, labels: Labels
) -> None:
    """A person's words cut out of a line that stands above are given by their meaning alone."""
    cause = diagnosis.causes[0]
    line = "Watchdog caught collective operation timeout: it ran for 600 s."
    first, second = (
        replace(cause.evidence[0], quote=quote, reason=reason, source="log")
        for quote, reason in ((line, "a timeout"), (line.rstrip("."), "ten minutes"))
    )
    told = replace(diagnosis, causes=(replace(cause, evidence=(first, second)),))
    text = render(told, labels)
    assert text.count("it ran for 600 s") == 1
    assert text.index("a timeout") < text.index("ten minutes")


@pytest.mark.parametrize("render", [text_of, markdown_of])
def test_of_several_files_the_file_is_named(
    render: Callable[..., str], diagnosis: Diagnosis, labels: Labels
) -> None:
    """First error, evidence, moments, warnings, waves and ranks tell the file beside the line."""
    incident, name = diagnosis.incident, "rank-3.log"
    first, (wave, *_) = incident.first_error, incident.waves
    assert first is not None
    waves = (replace(wave, file=name), replace(wave, file="b.log", first_line=7, last_line=9))
    told = replace(
        diagnosis,
        incident=replace(
            incident,
            first_error=replace(first, file=name),
            waves=waves,
            timeline=tuple(replace(item, file=name) for item in incident.timeline),
            ranks=tuple(replace(state, file=name, line=5) for state in incident.ranks),
        ),
        causes=tuple(
            replace(
                cause,
                evidence=tuple(replace(item, file=name, line=4) for item in cause.evidence),
            )
            for cause in diagnosis.causes
        ),
        warnings=tuple(replace(item, file=name, line=6) for item in diagnosis.warnings),
    )
    text = " ".join(render(told, labels).replace("\\", "").split())
    assert f"rank 3, {name} line {first.line}" in text
    assert f"{name} line 4" in text
    assert f"{name} line 6" in text
    assert f"{name}:5" in text
    assert f"{name} lines {wave.first_line}–{wave.last_line}, b.log lines 7–9" in text
    assert f"{name} line {incident.timeline[0].line}" in text


def test_settings_without_a_warning_take_one_line(diagnosis: Diagnosis, labels: Labels) -> None:
    """What is in order is counted, what is worth knowing is named, in every rendering."""
    words = Words(labels, "en")
    note = replace(
        diagnosis.warnings[0], setting="NCCL_P2P_DISABLE=1", verdict="debug_only", replacement=""
    )
    folded = replace(diagnosis, warnings=(), setting_notes=(note,), settings_in_order=14)
    line = present.settings_line(folded, words)
    assert line == (
        "14 settings are in order, 1 more worth knowing: NCCL_P2P_DISABLE=1 "
        "(for debugging only: remove it once you have looked)"
    )
    assert "14 settings are in order" in text_of(folded, labels)
    assert words("heading.warnings") not in text_of(folded, labels)
    assert "14 settings are in order" in markdown_of(folded, labels)
    assert present.settings_line(replace(diagnosis, settings_in_order=1), words) == (
        "1 setting is in order"
    )
    assert present.settings_line(diagnosis, words) == ""
    alias = replace(note, verdict="deprecated_alias", replacement="A_B=1")
    assert present.setting_advice(alias, words) == "deprecated alias: use A_B=1 instead"


@pytest.mark.parametrize("verdict", get_args(AdviceVerdict))
def test_what_to_do_about_a_setting(verdict: AdviceVerdict, labels: Labels) -> None:
    """Each verdict says it, in both languages."""
    for language in get_args(Language):
        assert Words(labels, language).term("setting_todo", verdict) != verdict


def test_all_of_it_has_timeline_and_checks(diagnosis: Diagnosis, labels: Labels) -> None:
    """What the screen leaves out."""
    full = text_of(diagnosis, labels)
    assert "Timeline" in full
    assert "dmesg -T | grep -i oom" in full


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [80, 120])
def test_prose_fits_the_width(
    diagnosis: Diagnosis, labels: Labels, language: Language, width: int
) -> None:
    """No line is wider than the window, commands and addresses aside: those must stay whole."""
    answer = replace(diagnosis, language=language, headline="很长的话。 word " * 40)
    text = text_of(answer, labels, width=width)
    whole = ("https://", "python train.py", "--batch", "dmesg", "py-spy")
    wide = [
        line
        for line in text.splitlines()
        if cell_len(line) > width and not line.strip().startswith(whole)
    ]
    assert wide == []


def test_commands_are_copied_whole(diagnosis: Diagnosis, labels: Labels) -> None:
    """A command wider than the window is not broken."""
    command = "srun --nodes 2 " + "--very-long-option " * 12 + "end"
    step = replace(diagnosis.next[0], command=command)
    text = text_of(replace(diagnosis, next=(step,)), labels, width=80)
    assert command in text


def test_a_quote_is_shown_once(diagnosis: Diagnosis, labels: Labels) -> None:
    """A line that is the first error and evidence of two causes is not repeated; reasons are."""
    quote = "torch.OutOfMemoryError: CUDA out of memory."
    text = text_of(diagnosis, labels)
    assert text.count(quote) == 1
    assert text.count("+ line 2 · first") == 2
    twice = replace(
        diagnosis.causes[0], evidence=(*diagnosis.causes[0].evidence, *diagnosis.causes[0].evidence)
    )
    markdown = markdown_of(replace(diagnosis, causes=(twice,)), labels)
    assert markdown.count(quote) == 1
    assert markdown.count("line 2 · first") == 1


@pytest.mark.parametrize(
    ("why", "shown"),
    [
        (("op:ALLREDUCE", "term:timing", "same op"), "same op, ALLREDUCE"),
        (("op:ALLREDUCE", "same collective ALLREDUCE"), "same collective ALLREDUCE"),
        (("term:timing", "term:seq", "language:cross"), "timing, seq"),
        (("language:same",), None),
        (("signature:cache", "same op"), "same op"),
        (("signature:cache", "term:timing"), "cache"),
    ],
)
def test_likenesses_are_said_by_worth(
    diagnosis: Diagnosis, labels: Labels, why: tuple[str, ...], shown: str | None
) -> None:
    """Sentences first, then ops; bare words only where there is nothing else."""
    case = replace(diagnosis.cases[0], why=why, differs=())
    notes = present.case_notes(case, Words(labels, "en"))
    assert notes == ([f"alike: {shown}"] if shown else [])


@pytest.mark.parametrize("render", [text_of, screen_of])
def test_unknown_and_no_timeout_are_answers(
    render: Callable[..., str], service: Service, labels: Labels, undecided_log: str
) -> None:
    """What happened stands first then too; that no cause is known is said."""
    unknown = render(service.diagnose_text(undecided_log, language="en"), labels)
    assert unknown.splitlines()[0] == "Rank 3 ran out of GPU memory"
    assert "undecided" in unknown or "the evidence does not decide" in unknown
    nothing = render(service.diagnose_text("all is well", language="en"), labels)
    assert nothing.splitlines()[0] == "No timeout in this text"
    assert "200 lines around" in nothing
    assert "Cause" not in nothing


@pytest.mark.parametrize("render", [text_of, screen_of])
def test_chinese_answer_has_chinese_labels(
    render: Callable[..., str], service: Service, labels: Labels, log: str
) -> None:
    """No English heading stands in a Chinese answer."""
    text = render(service.diagnose_text(log, language="zh"), labels)
    assert text.startswith("rank 3 显存耗尽\n")
    groups = ("heading.", "head.")
    english = [label.en for name, label in labels.items() if name.startswith(groups)]
    assert [word for word in english if word in text] == []


def test_rank_table_leaves_out_empty_columns(diagnosis: Diagnosis, labels: Labels) -> None:
    """Only columns with a value are shown, aligned."""
    lines = click.unstyle(render_ranks(diagnosis, Words(labels, "en"))).splitlines()
    assert lines[2:] == [
        "rank  state    enqueued  completed",
        "1     waiting  14217     14216",
        "3     crashed  14216     14216",
    ]


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(250, "250 ms"), (600_000, "10 min"), (5_400_000, "1 h 30 min"), (61_000, "1 min 1 s")],
)
def test_durations_read_as_people_say_them(labels: Labels, milliseconds: int, shown: str) -> None:
    """Milliseconds become hours, minutes and seconds, parts of zero left out."""
    assert duration(milliseconds, Words(labels, "en")) == shown


@given(st.lists(st.integers(min_value=0, max_value=40)))
def test_rank_spans_say_the_same_ranks(ranks: list[int]) -> None:
    """Reading the spans back gives the ranks, each once."""
    read: list[int] = []
    for part in filter(None, rank_span(ranks).split(", ")):
        low, _, high = part.partition("-")
        read += range(int(low), int(high or low) + 1)
    assert read == sorted(set(ranks))


@UNHURRIED
@given(text=NASTY)
def test_hostile_text_cannot_act_in_a_terminal(
    hostile: Callable[[str], Diagnosis], labels: Labels, text: str
) -> None:
    """Once our own colours are gone, nothing but printable characters and breaks is left."""
    shown = text_of(hostile(text), labels) + screen_of(hostile(text), labels)
    assert all(line.isprintable() for line in shown.split("\n"))


@UNHURRIED
@given(text=NASTY)
def test_hostile_text_cannot_act_in_markdown(
    hostile: Callable[[str], Diagnosis], labels: Labels, text: str
) -> None:
    """The document keeps our headings and links: no HTML, no image, no foreign link."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = parser.parse(markdown_of(hostile(text), labels))
    inner = [child for token in tokens for child in token.children or []]
    kinds = {token.type for token in (*tokens, *inner)}
    assert not kinds & {"html_inline", "image", "hr", "blockquote_open", "s_open"}
    folds = [token.content for token in tokens if token.type == "html_block"]
    assert len(folds) == 2
    assert folds[0].startswith("<details>\n<summary>The rest: more fixes")
    assert folds[1] == "</details>\n"
    links = {str(token.attrs["href"]) for token in inner if token.type == "link_open"}
    allowed = {"https://example.org/fix"} | ({text} if text.startswith("http") else set())
    assert links <= allowed
    headings = [token.tag for token in tokens if token.type == "heading_open"]
    assert headings == ["h2", *["h3"] * 5, *["h4"] * 4]


def test_quotes_stay_literal_in_markdown(
    hostile: Callable[[str], Diagnosis], labels: Labels
) -> None:
    """A line full of Markdown reads in the answer exactly as it stood in the log."""
    line = "```<b>[x](http://evil)</b>``` **NCCL** `WARN`"
    tokens = MarkdownIt("commonmark").parse(markdown_of(hostile(line), labels))
    inner = [child for token in tokens for child in token.children or []]
    assert plain(line) in {token.content for token in inner if token.type == "code_inline"}
    assert f"{line}\n" in {token.content for token in tokens if token.type == "fence"}
