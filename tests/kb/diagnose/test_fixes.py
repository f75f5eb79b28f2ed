"""Fixes: what fits the incident comes first, what cannot apply is left out."""

from __future__ import annotations

import pytest

from kb.diagnose.fixes import (
    Job,
    elsewhere,
    fit,
    fix_score,
    order_fixes,
)
from kb.knowledge.framework_names import framework_names
from kb.service import Service
from kb.types.incident import FirstError, Incident
from kb.types.knowledge import AppliesTo, Bilingual, Fix, FrameworkName

WORDS = Bilingual(zh="做", en="do")


def fix(name: str, **fields: object) -> Fix:
    """A fix with this id."""
    return Fix(id=name, title=WORDS, steps=(WORDS,), **fields)  # type: ignore[arg-type]


def test_the_framework_seen_comes_first_and_a_foreign_one_last() -> None:
    """Seen framework, then general, then one for a framework nobody named."""
    fixes = [
        fix("foreign", applies_to=AppliesTo(frameworks=("vllm",))),
        fix("general"),
        fix("own", applies_to=AppliesTo(frameworks=("deepspeed",))),
    ]
    ordered = order_fixes(fixes, Job(incident=Incident(frameworks=("deepspeed",))))
    assert [item.id for item in ordered] == ["own", "general", "foreign"]


def test_what_nobody_speaks_of_stands_behind_whatever_its_standing() -> None:
    """A confirmed fix for an Ascend comes after an untested general one when nobody named HCCL."""
    fixes = [
        fix("ascend", status="confirmed", applies_to=AppliesTo(backends=("hccl",))),
        fix("general", cost="high", risk="high"),
    ]
    assert [item.id for item in order_fixes(fixes, Job(incident=Incident()))] == [
        "general",
        "ascend",
    ]


def test_what_cannot_apply_is_left_out() -> None:
    """Another backend, another version and contradicted advice are not shown."""
    fixes = [
        fix("other-backend", applies_to=AppliesTo(backends=("hccl",))),
        fix("other-version", applies_to=AppliesTo(versions=("torch>=2.8",))),
        fix("refuted", status="contradicted"),
        fix("fits", applies_to=AppliesTo(backends=("nccl",), versions=("torch>=2.2",))),
    ]
    ordered = order_fixes(
        fixes, Job(incident=Incident(backend="nccl", versions={"torch": "2.4.0+cu121"}))
    )
    assert [item.id for item in ordered] == ["fits"]


def test_cheap_and_safe_comes_before_dear_and_risky() -> None:
    """At equal fit, cost and risk decide, then the id."""
    fixes = [
        fix("c", cost="high"),
        fix("b", risk="high"),
        fix("a2"),
        fix("a1"),
        fix("d", cost="low"),
    ]
    assert [item.id for item in order_fixes(fixes, Job(incident=Incident()))] == [
        "d",
        "a1",
        "a2",
        "c",
        "b",
    ]


def test_a_fix_for_the_error_seen_comes_first() -> None:
    """The first error's kind is looked for in the fix's id; half of its words is another error."""
    first = FirstError(rank=2, line=1, kind="cuda_oom", text="CUDA out of memory")
    fixes = [fix("crash/a-host-oom"), fix("crash/b-assert"), fix("crash/cuda-oom", cost="high")]
    ordered = [item.id for item in order_fixes(fixes, Job(incident=Incident(first_error=first)))]
    assert ordered == ["crash/cuda-oom", "crash/a-host-oom", "crash/b-assert"]
    plain = [item.id for item in order_fixes(fixes, Job(incident=Incident()))]
    assert plain == ["crash/a-host-oom", "crash/b-assert", "crash/cuda-oom"]


NCCL = Incident(backend="nccl", frameworks=("deepspeed",), stage="save")


@pytest.mark.parametrize(
    ("applies", "incident", "score"),
    [
        (AppliesTo(), NCCL, 1.0),
        (AppliesTo(frameworks=("deepspeed",)), NCCL, 2.0),
        (AppliesTo(frameworks=("vllm", "deepspeed")), NCCL, 2.0),
        (AppliesTo(frameworks=("vllm",)), NCCL, -1.0),
        (AppliesTo(stages=("save",)), NCCL, 1.5),
        (AppliesTo(stages=("eval",)), NCCL, 0.0),
        (AppliesTo(stages=("eval",)), Incident(), 0.75),  # nobody knows the stage
        (AppliesTo(frameworks=("deepspeed",), stages=("save",)), NCCL, 2.5),
        (AppliesTo(backends=("nccl",)), NCCL, 1.0),
        (AppliesTo(backends=("hccl",)), NCCL, -10.0),
        (AppliesTo(backends=("hccl",)), Incident(), 1.0),  # nobody knows the backend
        (AppliesTo(versions=("torch>=2.8",)), Incident(versions={"torch": "2.4"}), -10.0),
        (AppliesTo(versions=("torch>=2.8",)), Incident(versions={"torch": "2.8"}), 1.0),
    ],
)
def test_how_well_a_scope_fits(applies: AppliesTo, incident: Incident, score: float) -> None:
    """1 everywhere, 2 for the framework seen, 0.5 or -1 for the stage, -10 for what is not here."""
    assert fit(applies, incident) == score


@pytest.mark.parametrize(
    ("made", "score"),
    [
        # 1 for applying everywhere; reported 0.125, medium cost 0.25, low risk 0
        (fix("c/x"), 0.875),
        (fix("c/x", status="confirmed"), 1.0),
        (fix("c/x", status="unverified"), 0.75),
        (fix("c/x", status="contradicted"), -9.25),
        (fix("c/x", cost="low"), 1.125),
        (fix("c/x", cost="high"), 0.625),
        (fix("c/x", risk="medium"), 0.625),
        (fix("c/x", risk="high"), 0.375),
        (fix("c/cuda-oom"), 3.375),  # both words of the first error
        (fix("cuda/oom"), 0.875),  # one of two is another error
        (fix("c/host-oom"), 0.875),
        (fix("c/x", signs=("fact:behind",)), 3.375),
        (fix("c/x", signs=("fact:ahead",)), -0.125),  # made for another sign
        (fix("c/cuda-oom", signs=("fact:behind",)), 3.375),  # the better of the two reasons
        (fix("c/like"), 2.375),  # 1.5 points of likeness
        (fix("c/helped"), 3.875),  # helped in a case that matches
    ],
)
def test_the_score_of_a_fix(made: Fix, score: float) -> None:
    """Fit, 2.5 for a fix made for the error or a sign that was seen, standing and ease."""
    first = FirstError(rank=2, line=1, kind="cuda_oom_error", text="CUDA out of memory")
    job = Job(
        incident=Incident(first_error=first),
        seen={"fact:behind"},
        likeness={"c/like": 1.5},
        proven=frozenset({"c/helped"}),
    )
    assert fix_score(made, job) == score


@pytest.mark.parametrize(
    ("kind", "name", "score"),
    [
        ("a_b_c", "c/a-b", 2.5417),  # 2 of 3 words
        ("a_b", "c/a", 0.875),  # half is no match
        ("error", "c/error", 0.875),  # "error" is in nearly every kind
    ],
)
def test_words_of_the_first_error_in_the_id(kind: str, name: str, score: float) -> None:
    """2.5 times the share of its words, where that is more than half."""
    first = FirstError(rank=2, line=1, kind=kind, text="")
    made = fix_score(fix(name), Job(incident=Incident(first_error=first)))
    assert made == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize(
    ("applies", "incident", "foreign"),
    [
        (AppliesTo(), Incident(), False),
        (AppliesTo(frameworks=("pytorch",)), Incident(), False),
        (AppliesTo(frameworks=("ddp", "vllm")), Incident(), False),
        (AppliesTo(frameworks=("vllm",)), Incident(), True),
        (AppliesTo(frameworks=("vllm",)), Incident(frameworks=("vllm",)), False),
        (AppliesTo(backends=("nccl",)), Incident(), False),
        (AppliesTo(backends=("gloo", "hccl")), Incident(), True),
        (AppliesTo(backends=("hccl",)), Incident(backend="hccl"), False),
        (AppliesTo(backends=("nccl",)), Incident(backend="gloo"), True),
        (AppliesTo(frameworks=("vllm",), backends=("nccl",)), Incident(), True),
    ],
)
def test_what_is_made_for_elsewhere(applies: AppliesTo, incident: Incident, foreign: bool) -> None:
    """Another framework than those seen, PyTorch and DDP aside; another backend, or NCCL's."""
    assert elsewhere(applies, incident) is foreign


def test_a_fix_made_for_another_sign_stands_behind() -> None:
    """Where one of its signs was seen it comes first, where none was, last."""
    fixes = [fix("b", signs=("cue:other",)), fix("c"), fix("a"), fix("d", signs=("cue:ours",))]
    ordered = order_fixes(fixes, Job(incident=Incident(), seen={"cue:ours"}))
    assert [item.id for item in ordered] == ["d", "a", "c", "b"]


def test_a_fix_made_for_what_was_seen_comes_first(service: Service) -> None:
    """Signs lift a fix above general ones where they were seen and put it behind where not."""
    timeout = (
        "[rank1]:[E ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=142, OpType=_ALLGATHER_BASE, NumelIn=8, NumelOut=32, "
        "Timeout(ms)=600000) ran for 600105 milliseconds before timing out.\n"
    )

    def first(words: str, cause: str) -> list[str]:
        found = service.diagnose_text(words + timeout, top=19)
        return [fix.id for item in found.causes if item.id == cause for fix in item.fixes]

    mixed = first("Mixed text-only and image samples hang under ZeRO-3.\n", "collective-mismatch")
    plain = first("It hangs.\n", "collective-mismatch")
    assert mixed[0] == "collective-mismatch/dummy-modality"
    assert "collective-mismatch/same-path" in plain[:1]
    assert not {"collective-mismatch/dummy-modality", "collective-mismatch/empty-targets"} & set(
        plain[:2]
    )
    assert "network-config/ib-off-check" not in first("It hangs.\n", "network-config")[:2]


def test_no_timeout_asks_for_nothing_to_be_collected(service: Service) -> None:
    """Where nothing hung there is nothing to switch on for the next run."""
    found = service.diagnose_text("error: could not compile `demo` (bin) due to 1 previous error")
    assert (found.status, found.next) == ("no_timeout", ())


NAMES = framework_names(
    (
        FrameworkName(id="pytorch", words=("torch", "torchrun"), group="base"),
        FrameworkName(id="paddle", group="base"),
        FrameworkName(id="deepspeed", group="engine"),
        FrameworkName(id="megatron", group="engine"),
        FrameworkName(id="vllm"),
        FrameworkName(id="nemo", built_on=("megatron",)),
        FrameworkName(id="mpi", words=("mpirun",), group="launcher"),
        FrameworkName(id="torchrun", group="launcher"),
    )
)


@pytest.mark.parametrize(
    ("report", "made_for", "foreign"),
    [
        ("it hangs", ("deepspeed",), False),  # nobody says what it runs on
        ("Megatron hangs", ("deepspeed",), True),
        ("Megatron hangs", ("deepspeed", "megatron"), False),
        ("NeMo hangs", ("megatron",), False),  # NeMo is built on it
        ("vLLM hangs", ("nemo",), True),
        ("vLLM hangs", ("pytorch",), False),
        ("Paddle hangs", ("pytorch",), True),
        ("Paddle hangs, torch does not", ("pytorch",), False),
        ("Paddle hangs", (), False),
    ],
)
def test_fixes_of_another_framework_are_left_out(
    report: str, made_for: tuple[str, ...], foreign: bool
) -> None:
    """What is made for one framework is not listed where another one is named."""
    made = fix("c/x", applies_to=AppliesTo(frameworks=made_for))
    job = Job(incident=Incident(), uses=NAMES.used(report), names=NAMES)
    assert (order_fixes([made], job) == []) is foreign


@pytest.mark.parametrize(
    ("report", "commands"),
    [
        ("it hangs", ("torchrun train.py", "df -h")),
        ("started by mpirun", ("df -h",)),
        ("started by mpirun and by torchrun", ("torchrun train.py", "df -h")),
        ("Paddle hangs", ("df -h",)),
    ],
)
def test_commands_for_another_launcher_are_left_out(report: str, commands: tuple[str, ...]) -> None:
    """Who starts by mpirun is told of no torchrun; a fix of nothing else is left out."""
    made = fix("c/x", commands=("torchrun train.py", "df -h"))
    job = Job(incident=Incident(), uses=NAMES.used(report), names=NAMES)
    assert job.commands(made) == commands
    alone = fix("c/y", commands=("torchrun train.py",))
    assert bool(order_fixes([alone], job)) is (len(commands) == 2)


TIMED_OUT = (
    "[rank1]:[E ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=142, OpType=_ALLGATHER_BASE, NumelIn=8, NumelOut=32, Timeout(ms)=600000) ran "
    "for 600105 milliseconds before timing out.\n"
)


FIRST_OF_A_PLAIN_JOB = {
    "rank-crash": "find-first-error",
    "collective-mismatch": "same-path",
    "uneven-data": "equal-batches",
    "rank0-long-work": "prepare-offline",
    "checkpoint-io": "space",
    "data-loading-stall": "fewer-workers",
    "network-config": "name-interface",
    "network-fault": "replace",
    "p2p-topology": "disable-check",
    "shm-limits": "docker",
    "gpu-hardware": "diagnose",
    "software-version": "align",
    "timeout-too-short": "which-clock",
    "compute-skew": "find-why",
    "comm-deadlock": "one-order",
    "device-mapping": "set-device",
    "rendezvous": "same-values",
    "memory-pressure": "leave-margin",
    "unknown": "collect-first",
}


def test_a_plain_job_gets_the_general_step_of_its_cause_first(service: Service) -> None:
    """Where nothing but the backend is known no fix for a special case stands in front."""
    job = Job(incident=Incident(backend="nccl", has_timeout=True))
    causes = service.knowledge.causes
    first = {cause.id: order_fixes(cause.fixes, job)[0].id for cause in causes}
    assert first == {cause: f"{cause}/{name}" for cause, name in FIRST_OF_A_PLAIN_JOB.items()}


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (
            (
                "ZeRO-3 fine-tuning of a vision language model hangs once a rank has a batch "
                "of text only while the others have images.\n"
            ),
            "collective-mismatch/dummy-modality",
        ),
        (
            "用 FSDP 微调多模态模型，图文和纯文本混训，某个 rank 整批都是纯文本时就卡住。\n",
            "collective-mismatch/dummy-modality",
        ),
        (
            (
                "It hangs at the first checkpoint with DeepSpeed:\n"
                "if accelerator.is_main_process:\n    accelerator.save_state(output_dir)\n"
            ),
            "collective-mismatch/save-on-all-ranks",
        ),
        (
            (
                "DeepSpeed 训练一到存检查点就卡住，代码如下：\nif accelerator.is_main_process:\n"
                "    accelerator.save_state(output_dir)\n"
            ),
            "collective-mismatch/save-on-all-ranks",
        ),
        (
            (
                "Two cards hang in the first all_reduce at 100 % utilisation. lspci shows "
                "ACSCtl with SrcValid+ on the PCIe bridges.\n"
            ),
            "p2p-topology/acs-iommu",
        ),
        (
            "两张卡一做 all_reduce 就卡住，利用率 100%，lspci 里 ACSCtl 是 SrcValid+。\n",
            "p2p-topology/acs-iommu",
        ),
        (
            (
                "Two RTX 4090 hang right after init at 100 % utilisation, one GPU alone works. P2P "
                "between the cards seems broken.\n"
            ),
            "p2p-topology/disable-check",
        ),
        (
            "两张 3090 初始化后就卡死，利用率 100%，单卡正常，怀疑显卡之间的 P2P 直连坏了。\n",
            "p2p-topology/disable-check",
        ),
        (
            "Rank 5 is a straggler: it gets slower at every step until the others time out.\n",
            "compute-skew/find-why",
        ),
        ("第 5 号卡是慢卡，每一步都更慢，落后到其他卡超时。\n", "compute-skew/find-why"),
    ],
)
def test_the_fix_for_what_was_told_comes_first(service: Service, words: str, first: str) -> None:
    """The fix a person needs is the first of its cause, in both languages."""
    found = service.diagnose_text(words + TIMED_OUT, top=19)
    listed = {cause.id: [fix.id for fix in cause.fixes] for cause in found.causes}
    assert listed[first.partition("/")[0]][0] == first


@pytest.mark.parametrize(
    "words",
    [
        (
            "Every rank tokenizes the whole dataset before training with the HF Trainer; that "
            "takes more than half an hour and the others time out in a barrier.\n"
        ),
        "用 LLaMA-Factory 多卡训练，每个 rank 都在分词，要一个多小时，其它卡等待时超时。\n",
    ],
)
def test_who_tokenises_everywhere_is_told_to_do_it_once(service: Service, words: str) -> None:
    """Several processes and the main process first are among the first three fixes."""
    found = service.diagnose_text(words + TIMED_OUT, top=19)
    listed = [f.id for c in found.causes if c.id == "rank0-long-work" for f in c.fixes]
    assert "rank0-long-work/map-once" in listed[:3]


@pytest.mark.parametrize(
    ("words", "second"),
    [
        ("Two A6000 hang in the first all_reduce at 100 %, one GPU works.", "acs-iommu"),
        ("两张 A6000 第一次 all_reduce 就卡住，单卡正常。", "acs-iommu"),
        ("Two A100 of a virtual machine hang in the first all_reduce.", "virtual-machine"),
    ],
    ids=["bare-metal", "bare-metal-zh", "virtual-machine"],
)
def test_behind_the_way_around_stands_what_mends_p2p(
    service: Service, words: str, second: str
) -> None:
    """P2P is switched off to see; then ACS and IOMMU, or what a virtual machine needs instead."""
    listed = _listed(service, words, "p2p-topology")
    assert listed[:2] == ["p2p-topology/disable-check", f"p2p-topology/{second}"]


def test_an_unreachable_master_is_a_matter_of_ports(service: Service) -> None:
    """The firewall comes before the MTU where an address cannot be reached."""
    words = (
        "[W1120 11:02:03.1 socket.cpp:752] [c10d] The client socket has failed to connect to "
        "[node0]:29500 (errno: 110 - Connection timed out).\n"
    )
    listed = _listed(service, words, "network-config")
    assert listed.index("network-config/firewall") < listed.index("network-config/mtu")
    assert "network-config/firewall" in listed[:3]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("all_reduce hangs in RCCL after the upgrade of the library", True),
        ("升级之后 RCCL 的 all_reduce 卡住", True),
        ("all_reduce of 4 RTX 4090 hangs on one AMD host after the upgrade of NCCL", False),
    ],
    ids=["rccl", "rccl-zh", "an-amd-processor"],
)
def test_who_names_rccl_is_told_of_its_versions(service: Service, words: str, told: bool) -> None:
    """Words name the backend where no log does; an AMD host alone may hold NVIDIA cards."""
    listed = _listed(service, words, "software-version", log="")
    assert ("software-version/rccl" in listed[:3]) == told
    assert ("software-version/nccl-wheel" in listed) != told


def _listed(service: Service, words: str, cause: str, *, log: str = TIMED_OUT) -> list[str]:
    """The fixes of a cause, in order, for what is told of a timeout."""
    found = service.diagnose_text(words + "\n" + log, top=19)
    return [fix.id for item in found.causes if item.id == cause for fix in item.fixes]


def test_acs_is_cleared_at_once_and_p2p_switched_off_in_one_line(service: Service) -> None:
    """The first command of each needs no reboot."""
    fixes = {fix.id: fix for fix in service.knowledge.cause_by_id["p2p-topology"].fixes}
    assert "setpci" in fixes["p2p-topology/acs-iommu"].commands[0]
    assert fixes["p2p-topology/disable-check"].commands[0] == "export NCCL_P2P_DISABLE=1"


def test_an_ascend_is_told_of_no_nccl(service: Service) -> None:
    """The link set-up of HCCL gets its own fix first and no NCCL variable in any command."""
    log = (service.settings.data / "examples" / "ascend-link-setup.log").read_text("utf-8")
    cause = service.diagnose_text(log).causes[0]
    assert cause.fixes[0].id == "network-config/hccl"
    commands = [command for fix in cause.fixes for command in fix.commands]
    assert not [command for command in commands if "NCCL_" in command]


def test_an_exception_of_one_rank_is_to_be_fixed_before_anybody_is_asked(service: Service) -> None:
    """The launcher ends the other ranks itself: their SIGTERM tells of nobody outside."""
    log = (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/w/train.py", line 5, in <module>\n'
        "[rank1]: MemoryError: cannot allocate 3 GiB for the buffer\n"
        "[rank0]: Traceback (most recent call last):\n"
        '[rank0]:   File "/w/train.py", line 6, in <module>\n[rank0]:     dist.all_reduce(x)\n'
        "[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:547] Connection closed by peer "
        "[127.0.0.1]:36226\n"
        "W1128 08:15:36.596000 451 torch/distributed/elastic/multiprocessing/api.py:1028] Sending "
        "process 460 closing signal SIGTERM\n"
        "E1128 08:15:36.632000 451 torch/distributed/elastic/multiprocessing/api.py:1002] failed "
        "(exitcode: 1) local_rank: 1 (pid: 459) of binary: /usr/bin/python3.11\n"
        "train.py FAILED\nFailures:\n[1]:\n  time      : 2026-11-28_08:15:36\n"
        "  host      : localhost\n  rank      : 0 (local_rank: 0)\n"
        "  exitcode  : -15 (pid: 458)\n  error_file: <N/A>\n"
        "  traceback : Signal 15 (SIGTERM) received by PID 458\n"
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-28_08:15:36\n"
        "  host      : localhost\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 459)\n"
    )
    answer = service.diagnose_text(log, language="en")
    assert answer.headline.startswith("Rank 1 raised MemoryError")
    assert answer.first_fix is not None
    assert answer.first_fix.title.startswith("Fix that exception")
