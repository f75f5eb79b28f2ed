"""What an expert reads out of a log, on logs in the wording of the libraries."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.knowledge.load import Knowledge
from kb.logs import LogReader
from kb.types.incident import Incident


def work(rank: int, seq: int = 19, op: str = "ALLREDUCE", numel: int = 1, ms: int = 600_000) -> str:
    """The watchdog's report as torch 2.x prints it."""
    return (
        f"[rank{rank}]:[E511 21:37:{10 + rank % 40:02d}.112405891 ProcessGroupNCCL.cpp:629] "
        f"[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, "
        f"OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)={ms}) ran for {ms + rank} "
        "milliseconds before timing out."
    )


def status(rank: int, seq: int, enqueued: int, completed: int, group: str = "0(default_pg)") -> str:
    """The progress line of torch 2.6."""
    return (
        f"[rank{rank}]:[E511 21:37:10.112440392 ProcessGroupNCCL.cpp:2168] [PG ID 0 PG GUID {group}"
        f" Rank {rank}]  failure detected by watchdog at work sequence id: {seq} PG status: "
        f"last enqueued work: {enqueued}, last completed work: {completed}"
    )


def read(reader: LogReader, *lines: str) -> Incident:
    """The incident of these lines."""
    return reader.read_text("\n".join(lines)).incident


def names(incident: Incident) -> set[str]:
    """Names of the incident's facts."""
    return {fact.name for fact in incident.facts}


FORMS = {
    "torch 1.x": "[E ProcessGroupNCCL.cpp:587] [Rank 2] Watchdog caught collective operation "
    "timeout: WorkNCCL(OpType=BROADCAST, Timeout(ms)=1800000) ran for 1802157 milliseconds",
    "torch 2.0": "[E ProcessGroupNCCL.cpp:828] [Rank 2] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, TensorShape=[1], Timeout(ms)=1800000) ran for "
    "1802157 milliseconds before timing out.",
    "glog": "E0511 21:37:10.112405 144878 ProcessGroupNCCL.cpp:475] [Rank 2] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, NumelIn=4, NumelOut=4, "
    "Timeout(ms)=1800000) ran for 1802157 milliseconds before timing out.",
    "group prefix": "[rank2]:[E511 21:37:10.1 ProcessGroupNCCL.cpp:1515] [PG 1 (mesh_dp) Rank 2] "
    "Process group watchdog thread terminated with exception: [Rank 2] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, NumelIn=4, NumelOut=4, "
    "Timeout(ms)=1800000) ran for 1802157 milliseconds before timing out.",
    "wrapped": "[Rank 2] Watchdog caught collective operation timeout:\n  WorkNCCL(SeqNum=7, "
    "OpType=BROADCAST, NumelIn=4, NumelOut=4, Timeout(ms)=1800000)\n  ran for 1802157 milliseconds "
    "before timing out.",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_every_form_of_the_report(reader: LogReader, text: str) -> None:
    """Operation, limit, run time and rank are read from each form printed since torch 1.x."""
    incident = reader.read_text(text).incident
    assert (incident.backend, incident.op) == ("nccl", "BROADCAST")
    assert (incident.timeout_ms, incident.ran_ms) == (1_800_000, 1_802_157)
    assert incident.ranks_reporting == (2,)
    assert incident.has_timeout


def test_silent_rank_is_the_culprit(reader: LogReader) -> None:
    """Three of four ranks report, so the fourth is looked at."""
    incident = read(reader, *(work(rank) for rank in (1, 2, 3)))
    assert incident.ranks_reporting == (1, 2, 3)
    assert incident.ranks_silent == (0,)
    assert [culprit.rank for culprit in incident.culprit_ranks] == [0]
    assert {"ranks_missing", "rank0_missing", "scalar_allreduce", "mismatch_excluded"} <= names(
        incident
    )


def test_ranks_in_different_operations_agree_on_nothing(reader: LogReader) -> None:
    """A rank that hangs in another operation a number behind is told, and nothing is excluded."""
    incident = read(
        reader,
        "torch 2.5.1+cu124, NCCL version 2.21.5+cuda12.4, 8 ranks",
        *(work(rank, 9684, "_ALLGATHER_BASE", 4194304) for rank in (0, 1, 2, 4)),
        work(3, 9683, "ALLREDUCE", 1),
    )
    assert "mismatch_excluded" not in names(incident)
    fact = next(fact for fact in incident.facts if fact.name == "different_ops_hang")
    assert fact.detail == "rank 0,1,2,4: _ALLGATHER_BASE(4194304) 9684; rank 3: ALLREDUCE(1) 9683"
    assert "ALLREDUCE" in fact.quote
    assert [culprit.rank for culprit in incident.culprit_ranks] == [3]
    assert (incident.world_size, incident.ranks_silent) == (8, (5, 6, 7))


def test_a_rank_behind_excludes_no_mismatch(reader: LogReader) -> None:
    """Ranks that agree with each other say nothing about the one that is a number behind."""
    incident = read(reader, *(work(r, 120) for r in range(7)), work(7, 119))
    assert "rank_behind" in names(incident)
    assert not {"mismatch_excluded", "different_ops_hang"} & names(incident)


@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("world size: 8", 8),
        ("Initialized with world size of 16", 16),
        ("a total of 4 ranks", 4),
        ("tensor parallel world size: 2", None),
        ("still waiting for ranks, 2 ranks missing", None),
    ],
)
def test_world_sizes_said_in_words(reader: LogReader, line: str, size: int | None) -> None:
    """The number of all ranks is read where it can be nothing else."""
    assert read(reader, line, work(0), work(1)).world_size == size


def test_one_pasted_line_accuses_nobody(reader: LogReader) -> None:
    """A single report says nothing about the other ranks."""
    incident = read(reader, work(5))
    assert incident.ranks_silent == ()
    assert incident.culprit_ranks == ()
    assert "single_rank_reports" in names(incident)


def test_the_rank_behind(reader: LogReader) -> None:
    """A rank whose last enqueued work is below the others' is behind."""
    lines = [status(rank, 120, 124, 119) for rank in range(7)] + [status(7, 119, 119, 118)]
    incident = read(reader, *(work(r, 120) for r in range(7)), *lines)
    assert [culprit.rank for culprit in incident.culprit_ranks] == [7]
    assert {"rank_behind", "enqueued_beyond_timeout"} <= names(incident)
    row = next(state for state in incident.ranks if state.rank == 7)
    assert (row.state, row.last_enqueued, row.last_completed) == ("behind", 119, 118)


def test_mismatch_of_sizes_is_proven(reader: LogReader) -> None:
    """One number, one group, another size: the collectives differ, and the odd rank is named."""
    incident = read(
        reader,
        *(work(rank, 202_558, "_ALLGATHER_BASE", 2_359_296) for rank in (1, 2, 6)),
        work(0, 202_558, "_ALLGATHER_BASE", 75_264),
    )
    assert "mismatch_proven" in names(incident)
    assert [culprit.rank for culprit in incident.culprit_ranks] == [0]
    assert "75264" in incident.culprit_ranks[0].reason.zh


def test_a_group_named_by_one_rank_only(reader: LogReader) -> None:
    """The one group named at all is everybody's; two sizes in it differ, a tie accuses nobody."""
    incident = read(
        reader,
        work(0, 3437, "ALLREDUCE", 4_311_252),
        work(1, 3437, "ALLREDUCE", 1),
        "[rank1]:[E ProcessGroupNCCL.cpp:1537] [PG 0 Rank 1] Timeout at NCCL work: 3437, "
        "last enqueued NCCL work: 3437, last completed NCCL work: 3436.",
    )
    proof = next(fact for fact in incident.facts if fact.name == "mismatch_proven")
    assert proof.detail == "rank 0: ALLREDUCE(4311252); rank 1: ALLREDUCE(1)"
    assert incident.culprit_ranks == ()


def test_a_send_and_its_receive_are_no_mismatch(reader: LogReader) -> None:
    """One rank sends what the other receives: the operations differ by nature."""
    incident = read(reader, work(0, 9, "RECV", 4096), work(1, 9, "SEND", 4096))
    assert not {"mismatch_proven", "different_ops_hang"} & names(incident)
    assert incident.culprit_ranks == ()


def test_ranks_are_compared_within_one_wave(reader: LogReader) -> None:
    """After a restart more ranks hang elsewhere: that is no difference between ranks."""
    first = [work(rank, 100, "ALLREDUCE", 4096) for rank in range(4)]
    later = [
        f"[rank{rank}]:[E1119 18:51:26.1 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=220, OpType=BROADCAST, NumelIn=1, "
        "NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out."
        for rank in range(8)
    ]
    steps = [f"step {step} loss 1.0" for step in range(400)]
    incident = read(reader, *first, *steps, *later)
    assert "several_waves" in names(incident)
    assert not {"rank_behind", "different_ops_hang", "mismatch_proven"} & names(incident)
    assert incident.culprit_ranks == ()


@pytest.mark.parametrize("line", ["local world size: 2", "world size: 2", "node world size: 2"])
def test_a_part_is_not_the_world(reader: LogReader, line: str) -> None:
    """A size that ranks of the log lie outside of is that of a part."""
    incident = read(reader, line, *(work(rank, 7) for rank in range(4)))
    assert incident.world_size is None


def test_the_words_of_a_fact_are_bounded(reader: LogReader) -> None:
    """A thousand places make no thousand-line reason."""
    incident = read(reader, *(work(rank, rank, f"OP{rank % 50}") for rank in range(1000)))
    details = [fact.detail for fact in incident.facts if fact.name == "different_ops_hang"]
    assert [len(detail) < 2000 for detail in details] == [True]


def test_other_groups_do_not_mismatch(reader: LogReader) -> None:
    """The same number in two process groups proves nothing."""
    lines = [
        work(0, 50, "ALLREDUCE", 8),
        status(0, 50, 50, 49, "1(dp)"),
        work(1, 50, "ALLGATHER", 64),
        status(1, 50, 50, 49, "2(tp)"),
    ]
    assert "mismatch_proven" not in names(read(reader, *lines))


def test_the_real_error_stands_above_the_spam(reader: LogReader) -> None:
    """An error of one rank before the timeouts of the others comes first; the rest follows."""
    incident = read(
        reader,
        "[rank2]: Traceback (most recent call last):",
        '[rank2]:   File "train.py", line 12, in train',
        "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 336.00 MiB. If "
        "reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
        "node:15325:16199 [0] NCCL INFO [Service thread] Connection closed by localRank 2",
        *(work(rank) for rank in (0, 1, 3)),
        "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.",
    )
    assert incident.first_error is not None
    assert (incident.first_error.rank, incident.first_error.line) == (2, 3)
    assert incident.first_error.kind == "cuda_oom"
    assert "PYTORCH_CUDA_ALLOC_CONF" not in incident.settings
    assert [culprit.rank for culprit in incident.culprit_ranks] == [2]
    assert {"first_error_before_timeout", "single_rank_error"} <= names(incident)


CHATTER = {
    "advice": "You can set NCCL_P2P_DISABLE=1 to avoid RuntimeError: NCCL error",
    "warning": "x.py:3: FutureWarning: passing None raises ValueError: in the future",
    "frame": "frame #2: c10d::ProcessGroupNCCL::watchdogHandler() RuntimeError: x",
    "code": "    raise RuntimeError: not an event",
    "cascade": "[1]: RuntimeError: [gloo/pair.cc:534] Connection closed by peer [10.0.0.4]:42312",
    "teardown": "Sending process 23970 closing signal SIGTERM",
}


@pytest.mark.parametrize("line", CHATTER.values(), ids=CHATTER)
def test_chatter_is_never_the_first_error(reader: LogReader, line: str) -> None:
    """Advice, warnings, frames, quoted code, cascades and teardown are no first error."""
    assert read(reader, line, work(0), work(1)).first_error is None


def test_torchruns_table_names_the_killed_rank(reader: LogReader) -> None:
    """The rank stands one line above its exit code; the watchdog's own abort is no culprit."""
    incident = read(
        reader,
        work(0),
        "Failures:",
        "[1]:",
        "  rank      : 0 (local_rank: 0)",
        "  exitcode  : -6 (pid: 11)",
        "Root Cause (first observed failure):",
        "[0]:",
        "  rank      : 3 (local_rank: 3)",
        "  exitcode  : -9 (pid: 12)",
        "  traceback : Signal 9 (SIGKILL) received by PID 12",
    )
    assert incident.first_error is not None
    assert (incident.first_error.rank, incident.first_error.kind) == (3, "signal_death")
    assert {"signal_9", "signal_6"} <= names(incident)
    row = next(state for state in incident.ranks if state.rank == 3)
    assert (row.state, row.exit_code, row.signal) == ("crashed", -9, "SIGKILL")


def test_two_waves(reader: LogReader) -> None:
    """Progress and a gap between two bursts make two waves."""
    steps = [f"step {n} loss 1.0" for n in range(5000)]
    late = work(1, 90).replace("21:37", "23:59")
    incident = read(reader, work(0, 12), work(1, 12), *steps, late)
    assert [(wave.seq, wave.first_line) for wave in incident.waves] == [(12, 1), (90, 5003)]
    assert "several_waves" in names(incident)
    assert incident.seq == 12


def test_an_ignored_setting(reader: LogReader) -> None:
    """NCCL_TIMEOUT is set and the log shows another limit: nobody read it."""
    incident = read(reader, "export NCCL_TIMEOUT=7200", work(0, ms=1_800_000))
    assert incident.settings["NCCL_TIMEOUT"] == "7200"
    assert {"nccl_timeout_ignored", "default_timeout_1800s"} <= names(incident)
    agreeing = read(reader, "export NCCL_TIMEOUT=600", work(0, ms=600_000))
    assert "nccl_timeout_ignored" not in names(agreeing)


def test_preprocessing_beside_an_early_barrier(reader: LogReader) -> None:
    """A tokenizer bar and a scalar all-reduce at number 2 stand together."""
    incident = read(
        reader,
        "Running tokenizer on dataset:   9%|███▊      | 280000/2969526 [29:55<4:48:08, 155.57 "
        "examples/s]" + work(1, 2),
        work(2, 2),
        work(3, 2),
    )
    assert incident.stage == "data"
    assert {"tokenizer_or_map_progress_nearby", "early_seq", "scalar_allreduce"} <= names(incident)


STAGES = {
    "save": "INFO Saving checkpoint. This may take some time.",
    "eval": "***** Running Evaluation *****",
    "train": "{'loss': 6.8931, 'learning_rate': 0.00098, 'epoch': 0.03}",
    "load": "Loading safetensors checkpoint shards: 98% Completed | 159/163 [31:48<00:40]",
    "inference": "Processed prompts:   0%|          | 0/16 [00:00<?, ?it/s]",
    "data": "> building train, validation, and test datasets for GPT ...",
}
DATA_LOADING = '  File "/usr/lib/torch/utils/data/dataloader.py", line 1328, in _next_data'


@pytest.mark.parametrize(("stage", "line"), [*STAGES.items(), ("data", DATA_LOADING)])
def test_stage_from_the_neighbourhood(reader: LogReader, stage: str, line: str) -> None:
    """The last thing the job printed before the failure tells the stage."""
    assert read(reader, line, work(0, 500)).stage == stage


def test_first_collective_is_initialisation(reader: LogReader) -> None:
    """Number 1 and nothing else printed: the group never worked."""
    incident = read(reader, work(0, 1), status(0, 1, 1, -1))
    assert incident.stage == "init"
    assert {"first_collective", "none_completed"} <= names(incident)


def test_transport_and_interface(reader: LogReader) -> None:
    """What NCCL chose is read, and a tunnel interface is told from a network card."""
    incident = read(
        reader,
        "w:97:221 [0] NCCL INFO NET/Socket : Using [0]ip6tnl0:fe80::e866:19ff:fe1e:a688%ip6tnl0<0>",
        "w:97:221 [0] NCCL INFO Channel 00 : 1[1] -> 0[0] via SHM/direct/direct",
        "w:97:221 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.",
        "NCCL version 2.18.5+cuda12.2",
    )
    assert incident.transport == ("if:ip6tnl0", "shm")
    assert incident.versions == {"cuda": "12.2", "nccl": "2.18.5"}
    assert incident.settings["NCCL_IB_DISABLE"] == "1"
    assert "transport_wrong_interface" in names(incident)
    assert not any(name.startswith("setting_") for name in names(incident))


def test_http_on_the_port_of_nccl(reader: LogReader) -> None:
    """The wrong magic spells GET: a scraper talked to NCCL."""
    magic = "misc/socket.cc:484 NCCL WARN socketFinalizeAccept: wrong magic {} != 7970663b906d70b9"
    assert "magic_number_http" in names(read(reader, magic.format("74656d2f20544547")))
    assert "magic_number_http" not in names(read(reader, magic.format("7970663b90600000")))


def test_roll_call_names_the_absent(reader: LogReader) -> None:
    """The monitored barrier lists who is missing."""
    incident = read(
        reader,
        "[E ProcessGroupGloo.cpp:138] [Rank 0]: Ranks 2, 5 failed to pass monitoredBarrier in "
        "30000 ms",
    )
    assert incident.backend == "gloo"
    assert sorted(culprit.rank for culprit in incident.culprit_ranks) == [2, 5]


def test_desync_report_names_the_lagging(reader: LogReader) -> None:
    """The desync report's ranks are the culprits."""
    incident = read(
        reader,
        work(1),
        " - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:",
        "   - [0] finished collective #18, but didn't join collective #19 (count from 1)",
    )
    assert [culprit.rank for culprit in incident.culprit_ranks] == [0]


PLAIN_FAILURES = {
    "pytest": "E       AssertionError: assert 1 == 2\n1 failed, 3 passed in 0.12s",
    "pip": "ERROR: Could not find a version that satisfies the requirement x\n"
    "WARNING: Retrying after connection broken by 'NewConnectionError: Name or service not known'",
    "compiler": "foo.cc:12:3: error: use of undeclared identifier 'x'",
    "oom": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "finished": "{'loss': 1.2, 'epoch': 3.0}\n100%|██████| 500/500 [10:00<00:00]\nDone.",
    "web server": "OSError: [Errno 98] Address already in use",
    "healthy nccl": "n:1:2 [0] NCCL INFO Connected all rings\nNCCL version 2.18.5+cuda12.2",
    "question": "How do I set the timeout of init_process_group? My training hangs.",
}


@pytest.mark.parametrize("text", PLAIN_FAILURES.values(), ids=PLAIN_FAILURES)
def test_other_failures_are_no_timeouts(reader: LogReader, text: str) -> None:
    """Without a sign from a communication library nothing is called a timeout."""
    assert not reader.read_text(text).incident.has_timeout


def test_ranks_of_a_folder(reader: LogReader, tmp_path: Path) -> None:
    """Logs without any prefix get their ranks from the files' names."""
    bare = work(0, 77).split("] ", 2)[2]
    for rank in (0, 1, 3):
        (tmp_path / f"rank_{rank}.log").write_text(f"starting\n{bare}\n", encoding="utf-8")
    (tmp_path / "rank_2.log").write_text("starting\nKeyError: 'labels'\n", encoding="utf-8")
    incident = reader.read_paths([tmp_path]).incident
    assert incident.ranks_reporting == (0, 1, 3)
    assert incident.first_error is not None
    assert (incident.first_error.rank, incident.first_error.line) == (2, 2)
    assert [culprit.rank for culprit in incident.culprit_ranks] == [2]


def test_words_and_output_are_told_apart(reader: LogReader) -> None:
    """A person's sentences are the description, a program's lines are not."""
    said = ["训练到第三轮就卡住了", "It hangs after the first epoch, any ideas?"]
    reading = reader.read_text("\n".join([said[0], work(0), said[1], "NCCL version 2.18.5"]))
    assert reading.words.split("\n") == said
    assert "WorkNCCL" in reading.excerpt


def test_what_a_program_explains_is_nobodys_word(reader: LogReader) -> None:
    """What a program logs, and the causes it lists for its error, nobody said."""
    reading = reader.read_text(
        "A worker died by an unexpected system error. There are some potential root causes. "
        "(1) The process is killed by the OOM killer\n"
        "        Possible Cause: 1. The execution on some NPU is too slow\n"
        "一个可能的原因：磁盘满了\n"
        "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 7 closing signal\n"
        "[core.py:710] raise TimeoutError\n"
    )
    assert reading.words.split("\n")[-1] == "一个可能的原因：磁盘满了"
    assert reading.word_places[-1] == ("", 3)
    assert not any(word in reading.words for word in ("OOM", "NPU", "SIGTERM", "TimeoutError"))


def test_quotes_are_pieces_of_the_redacted_input(reader: LogReader) -> None:
    """Every quoted text stands in the input, with the line number it says, and no secret."""
    secret = "hf_" + "aB3" * 10
    lines = [
        f"HF_TOKEN={secret}",
        work(0),
        f"[rank1]: ValueError: bad token {secret} from joe@example.org",
        status(0, 19, 19, 18),
    ]
    reading = reader.read_text("\n".join(lines))
    assert secret not in repr(reading)
    assert "joe@example.org" not in repr(reading)
    assert reading.redactions >= 2
    for event in reading.events:
        if "<redacted:" not in event.text:
            assert event.text in lines[event.line - 1]
    for fact in reading.incident.facts:
        if fact.line and "<redacted:" not in fact.quote:
            assert fact.quote in lines[fact.line - 1]


def test_every_fact_has_a_meaning(reader: LogReader, knowledge: Knowledge) -> None:
    """Facts found on the examples of all patterns stand in facts.yaml, by name or by family."""
    known = {fact.id for fact in knowledge.facts}
    families = tuple(name[:-1] for name in known if name.endswith("*"))
    examples = [line for pattern in knowledge.patterns for line in pattern.examples]
    facts = set().union(*(names(reader.read_text(line).incident) for line in examples))
    assert not {name for name in facts - known if not name.startswith(families)}
