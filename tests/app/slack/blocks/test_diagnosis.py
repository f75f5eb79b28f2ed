"""The message of a diagnosis: what it names, and that no text in it becomes markup."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.render.escape import plain
from app.slack.blocks import primitives as kit
from app.slack.blocks.diagnosis import cases_message, diagnosis_message, fixes_message
from app.slack.requests import DiagnosisRef
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis
from kb.types.knowledge import Bilingual
from tests.app.slack.fake.samples import HOSTILE_PIECES

Labels = dict[str, Bilingual]
REF = DiagnosisRef(saved_id="abcdefghijklmnop", language="en", conversation="slack:T1:C1:1.2")
HOSTILE = st.lists(
    st.sampled_from(HOSTILE_PIECES) | st.text(max_size=20), min_size=1, max_size=200
).map(" ".join)


def text_objects(value: object) -> Iterator[dict[str, Any]]:
    """Every object with a text, at any depth."""
    if isinstance(value, dict):
        if isinstance(value.get("text"), str):
            yield value
        for item in value.values():
            yield from text_objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from text_objects(item)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(text=HOSTILE)
def test_a_hostile_answer_holds_no_markup_and_keeps_the_limits(
    hostile: Callable[[str], Diagnosis], labels: Labels, text: str
) -> None:
    """Texts from outside stand only where Slack interprets nothing, within its limits."""
    answer = hostile(text)
    words = Words(labels, "en")
    for message in (
        diagnosis_message(answer, words, REF, public_url="https://kb.example.org"),
        fixes_message(answer, words),
        cases_message(answer, words),
    ):
        assert not set(message.text) & {"<", ">"}
        assert len(message.text) <= 4000
        assert 1 <= len(message.blocks) <= kit.MAX_BLOCKS
        assert sum(kit.text_size(block) for block in message.blocks) <= kit.MAX_MESSAGE + 100
        kinds = {item["type"] for item in text_objects(message.blocks)}
        assert kinds <= {"plain_text", "text", "link"}
        for item in text_objects(message.blocks):
            assert 1 <= len(item["text"]) <= kit.MAX_SECTION
            assert item["type"] != "plain_text" or item["emoji"] is False
        ours = ("https://example.org/", "https://kb.example.org/")
        links = {item["url"] for item in text_objects(message.blocks) if item["type"] == "link"}
        assert all(url.startswith(ours) for url in links if url != plain(text))


def test_the_answer_names_verdict_evidence_fix_and_cases(
    diagnosis: Diagnosis, labels: Labels
) -> None:
    """What happened, the first fix's command, the cause and why, the case's link, the buttons."""
    words = Words(labels, "en")
    message = diagnosis_message(diagnosis, words, REF)
    assert message.blocks[0] == kit.header(diagnosis.headline)
    assert message.text.startswith(f"{diagnosis.headline} — One rank crashed first (rank-crash)")
    texts = [item["text"] for item in text_objects(message.blocks)]
    order = ["Do first", "Use less memory", "1. One rank crashed first"]
    assert [text for text in texts if text in order] == order
    assert diagnosis.causes[0].evidence[0].quote in texts
    assert diagnosis.causes[0].fixes[0].commands[0] in texts
    assert {
        "type": "link",
        "url": diagnosis.cases[0].url,
        "text": diagnosis.cases[0].title,
    } in list(text_objects(message.blocks))
    buttons = message.blocks[-1]["elements"]
    assert [button["action_id"] for button in buttons] == [
        "right",
        "wrong",
        "fixes",
        "cases",
        "incident",
        "next_check",
    ]
    assert {DiagnosisRef.decode(button["value"]) for button in buttons} == {REF}


def test_an_undecided_answer_asks_instead_of_claiming(
    service: Any, undecided_log: str, labels: Labels
) -> None:
    """Without a verdict nobody can say that it was right; the check that decides is shown."""
    diagnosis = service.diagnose_text(undecided_log, language="en")
    message = diagnosis_message(diagnosis, Words(labels, "en"), REF)
    actions = [button["action_id"] for button in message.blocks[-1]["elements"]]
    assert "right" not in actions
    assert "wrong" in actions
    assert "dmesg -T" in [item["text"] for item in text_objects(message.blocks)]
