"""Small labelled threads and samples."""

from __future__ import annotations

from kb.diagnose.signals import Signal
from kb.train.threads import LabelledThread
from kb.train.weights import Sample

CAUSES = ("alpha", "beta", "chi")
TIMEOUT_LOG = (
    "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, "
    "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
)


def thread(
    name: str = "one",
    *,
    cause: str = "alpha",
    also: tuple[str, ...] = (),
    text: str = "it hangs",
    log: str = "",
    language: str = "en",
    repo: str = "",
    measurable: bool = True,
    answer: str = "",
) -> LabelledThread:
    """A labelled thread."""
    return LabelledThread(
        id=name,
        url=f"https://example.org/{name}/issues/1",
        repo=repo or f"owner/{name}",
        language=language,
        text=text,
        log=log,
        cause=cause,
        also=also,
        measurable=measurable,
        answer=answer,
    )


def sample(cause: str, group: str, *, says: str = "") -> Sample:
    """A sample that shows one signal named `says`, to which the expert gives no nats."""
    signal = Signal(
        name=f"cue:{says or cause}",
        kind="text",
        quote="q",
        line=1,
        weights=dict.fromkeys(CAUSES, 0.0),
        reason_id="r",
        source="s",
    )
    return Sample(signals=(signal,), votes={}, cause=cause, also=(), group=group)
