"""What is fuzzed: each target takes bytes and may refuse them, never fail."""

from __future__ import annotations

import contextlib
import json
import pickle
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from kb.chat.chat import Chat
from kb.errors import KBError
from kb.evidence.collect import add_evidence, read_evidence_stream
from kb.evidence.detect import evidence_in_stream
from kb.evidence.flight_recorder.analysis import analyse
from kb.evidence.flight_recorder.dump_file import parse_dump
from kb.evidence.source_code import code_facts
from kb.service import Service
from kb.settings_check.extract import find_settings
from kb.settings_check.job import JobReader
from kb.text.line_kind import read_lines
from kb.text.redact import redact
from kb.types.incident import Incident
from tests.fuzz import faces
from tests.shipped_part import shipped_cases, shipped_part

INPUTS = Path(__file__).parent / "inputs"  # what failed once
SMALL = 12  # cases of the knowledge base that answers
OPTIONS = ("timeout", "ddp_timeout", "zero_stage", "bf16")
SPLICES = (
    b"\xef\xbc\x92", b"\xc2\xb2", b"\xd9\xa3", b"9" * 5000, b"-1", b"1e999", b"NaN", b"\x00", b"\r",
    b"\xff", b"\xed\xa0\x80", "卡住".encode(), b"&a [*a]", b"<<: *a", b"---\n", b"```\n", b"# ",
    b"](", b"{" * 200, b"[" * 200, b"(" * 200, b"<div>" * 250, b"<!--", b" " * 500, b"\n" * 50,
    b"a" * 500, b"::", b"=", b'"', b"'", b"${", b"\\", b"rank 3 ", b"2026-13-45", b"!!int ''",
    b"\xe2\x80\xa8", b"\x1b[31m", b"\x85", b"0x", b"timedelta(", b"if rank == 0:\n    ", b"\t",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """One target: what it does with bytes, what it begins from, and the words of its field."""

    run: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...] = SPLICES


def small_data(data: Path, shipped: Path) -> None:
    """Make `data` the shipped knowledge with a few of its cases."""
    shipped_part(data, shipped, shipped_cases(shipped)[:SMALL])


class Targets:
    """All targets over one small knowledge base in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.stack = contextlib.ExitStack()  # what targets have open

    @cached_property
    def service(self) -> Service:
        """The knowledge base that answers."""
        from kb.bootstrap import open_service
        from kb.settings import Settings, shipped_data

        data = self._folder / "data"
        small_data(data, shipped_data())
        return open_service(Settings(home=self._folder / "home", data=data))

    def close(self) -> None:
        """Close all that targets opened."""
        self.stack.close()
        self.service.close()

    def of(self, name: str) -> Target:
        """The target of that name.

        Raises:
            KeyError: there is none.
        """
        return Target(run=RUNS[name](self), seeds=SEEDS[name]())


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _reader(targets: Targets) -> Callable[[bytes], object]:
    return lambda data: targets.service.read_stream([data])


def _diagnosis(targets: Targets) -> Callable[[bytes], object]:
    return lambda data: targets.service.diagnose_text(_text(data))


def _lines(_targets: Targets) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        text = _text(data)
        lines = read_lines(text)
        code_facts(lines, text)

    return run


def _recorder(_targets: Targets) -> Callable[[bytes], object]:
    return lambda data: analyse([parse_dump(data, name="dump_0"), parse_dump(data, name="dump_1")])


def _evidence(_targets: Targets) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        kind, stream = evidence_in_stream([data])
        for each in (kind,) if kind else ("stacks", "ras", "kernel", "torchrun"):
            content = list(stream) if kind else [data]
            add_evidence(Incident(), read_evidence_stream(each, content))

    return run


def _settings(targets: Targets) -> Callable[[bytes], object]:
    jobs = JobReader(targets.service.knowledge.job_settings)

    def run(data: bytes) -> None:
        text = _text(data)
        find_settings(text, OPTIONS)
        jobs.read(read_lines(text))
        targets.service.lint(text)
        with contextlib.suppress(KBError):  # hardly any text is a version
            targets.service.lint("NCCL_IB_TIMEOUT=23", torch=text[:40])

    return run


def _ingest(suffix: str) -> Callable[[Targets], Callable[[bytes], object]]:
    def make(targets: Targets) -> Callable[[bytes], object]:
        from ingest import Ingestor
        from tests.ingest.fakes import MemorySink

        service = targets.service
        folder = Path(tempfile.mkdtemp(dir=targets._folder))
        path = folder / f"page{suffix}"

        def run(data: bytes) -> None:
            path.write_bytes(data)
            sink = MemorySink()
            ingestor = Ingestor(sink, service.reader, data=service.settings.data)
            report = ingestor.ingest_paths([path])
            failed = [item.reason for item in report.refused if item.code == "not_imported"]
            if failed:
                raise RuntimeError(failed[0])

        return run

    return make


def _chat(targets: Targets) -> Callable[[bytes], object]:
    chat = Chat(targets.service)
    conversation = ""

    def run(data: bytes) -> None:
        nonlocal conversation
        reply = chat.say(_text(data), conversation=conversation)
        # every second message goes on with the conversation before
        conversation = "" if conversation else reply.conversation

    return run


def _redact(_targets: Targets) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        once, _ = redact(_text(data))
        twice, _ = redact(once)
        if once != twice:
            raise RuntimeError("redacting twice changes more")

    return run


RUNS: Mapping[str, Callable[[Targets], Callable[[bytes], object]]] = {
    "reader": _reader,
    "lines": _lines,
    "recorder-pickle": _recorder,
    "recorder-json": _recorder,
    "evidence": _evidence,
    "settings": _settings,
    "markdown": _ingest(".md"),
    "html": _ingest(".html"),
    "json": _ingest(".json"),
    "jsonl": _ingest(".jsonl"),
    "text": _ingest(".txt"),
    "redact": _redact,
    "chat": _chat,
    "diagnosis": _diagnosis,
    "api": faces.api,
    "slack": faces.slack,
}


# --- what they begin from ------------------------------------------------------------------------


@cache
def _log_lines() -> tuple[bytes, ...]:
    from kb.knowledge.load import load_knowledge
    from kb.settings import shipped_data

    patterns = load_knowledge(shipped_data()).patterns
    return tuple(sorted({line.encode() for pattern in patterns for line in pattern.examples}))


def _logs() -> tuple[bytes, ...]:
    lines = _log_lines()
    return tuple(b"\n".join(lines[start : start + 8]) for start in range(0, len(lines), 8))


def _dump() -> dict[str, object]:
    entry = {
        "record_id": 1, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": 3,
        "profiling_name": "nccl:all_reduce", "input_sizes": [[4, 2]], "output_sizes": [[4, 2]],
        "input_dtypes": ["Float"], "time_created_ns": 17, "state": "scheduled", "timeout_ms": 600,
        "frames": [{"name": "f", "filename": "train.py", "line": 3}], "is_p2p": False,
        "time_discovered_completed_ns": None, "retired": False, "p2p_seq_id": 0, "op_id": 3,
    }  # fmt: skip
    send = {**entry, "profiling_name": "nccl:send 0->1", "is_p2p": True, "record_id": 2}
    return {
        "version": "2.4",
        "nccl_version": "2.21.5",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}},
        "pg_status": {"0": {"last_enqueued_collective": 3, "last_completed_collective": 2}},
        "entries": [entry, send],
    }


def _pages() -> tuple[bytes, ...]:
    from tests.ingest.pages import SITES, ZH, text_page

    return tuple(text_page(site, ZH, "flat").encode() for site in list(SITES.values())[:4])


MARKDOWN = (
    b"---\ntitle: {zh: a, en: b}\ndate: 2024-05-06\nurl: https://example.org/a\n---\n"
    b"# Title\n\n## Symptom\nNCCL timeout\n\n## Fix ##\n1. raise it\n```\nexport A_B=1\n```\n"
    b"- b: c\n"
)
HTML = (
    b"<html><head><title>A hang</title><meta name='date' content='2024-05-06'></head><body>"
    b"<article><h1>Hang</h1><p>by X, 2024-05-06</p><h2>Cause</h2><ul><li>x<pre>y</pre></li></ul>"
    b"<table><tr><td>1</td></tr></table></article></body></html>"
)
STACKS = (
    b'Process 1: python train.py --rank 3\nPython v3.11\nThread 1 (active+gil): "MainThread"\n'
    b"    all_reduce (torch/distributed/distributed_c10d.py:2)\n    train (train.py:4)\n"
)
RAS = (
    b"NCCL version 2.24.3\nJob summary\n  Nodes\nCommunicators...\n#0-0 (ab) MISMATCH\n"
    b"  7 ranks have launched up to operation 4\n  Rank 3 has launched up to operation 2\n"
    b"  The missing ranks: 3, 5-7\n 1 job process is considered dead\n"
)
KERNEL = b"[   12.345678] NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n[   12.345679] mlx5_0: Link DOWN\n"
TORCHRUN = b'{"message": {"message": "OOM", "extraInfo": {"timestamp": "1", "py_callstack": ""}}}'
SCRIPT = (
    b"#SBATCH --nodes=2\nexport NCCL_IB_TIMEOUT=22\ntorchrun --nnodes 2 --nproc_per_node=8 t.py\n"
    b"env:\n- name: NCCL_DEBUG\n  value: INFO\nos.environ['A_B'] = '1'\n"
    b"dist.init_process_group(timeout=timedelta(minutes=30))\nif rank == 0:\n    dist.barrier()\n"
)
QUESTIONS = (
    "训练卡住了，第 3 张卡没有响应，怎么办？".encode(),
    b"Rank 3 hangs in all_reduce after eval. What should I check first?",
    b"no, that is not it. 2",
    b"I set NCCL_TIMEOUT to 7200 with torch 2.1.0 on 8xA100; does it help?",
)


def _json_thread() -> bytes:
    thread = {
        "title": "hang",
        "body": "NCCL timeout",
        "url": "https://github.com/a/b/issues/1",
        "created_at": "2024-05-06T00:00:00Z",
        "comments": [{"body": "fixed by 2.1", "user": {"login": "x"}}],
        "state": "closed",
    }
    return json.dumps(thread).encode()


SEEDS: Mapping[str, Callable[[], tuple[bytes, ...]]] = {
    "reader": _logs,
    "lines": lambda: (SCRIPT, *QUESTIONS, *_logs()[:40]),
    "recorder-pickle": lambda: tuple(pickle.dumps(_dump(), protocol) for protocol in (2, 3, 4, 5)),
    "recorder-json": lambda: (json.dumps(_dump()).encode(),),
    "evidence": lambda: (STACKS, RAS, KERNEL, TORCHRUN),
    "settings": lambda: (SCRIPT, *QUESTIONS, *_logs()[:40]),
    "markdown": lambda: (MARKDOWN,),
    "html": lambda: (HTML,),
    "json": lambda: (_json_thread(),),
    "jsonl": lambda: (_json_thread() + b"\n" + _json_thread(),),
    "text": _pages,
    "redact": lambda: (
        b"export HF_TOKEN=hf_" + b"Zk9" * 12,
        b"https://user:pass@host/x password: hunter22",
        *_logs()[:20],
    ),
    "chat": lambda: QUESTIONS + _logs()[:10],
    "diagnosis": lambda: (*QUESTIONS, SCRIPT, *_logs()),
    "api": faces.api_seeds,
    "slack": faces.slack_seeds,
}


def refuse_quietly(run: Callable[[bytes], object], data: bytes) -> bool:
    """Run a target; whether it refused the bytes with an error made for people."""
    try:
        run(data)
    except KBError:
        return True
    return False
