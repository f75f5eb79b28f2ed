"""What started the job is seen by what is pasted, and its users get commands of their own."""

from __future__ import annotations

import pytest

from kb.diagnose.launchers import LauncherReader, job_commands
from kb.errors import DataError
from kb.service import Service
from kb.types.incident import Incident, LogReading
from kb.types.knowledge import Launcher
from kb.types.vocabulary import Language

TIMEOUT = """\
[rank1]:[E ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=14217, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) \
ran for 600105 milliseconds before timing out.
"""


@pytest.mark.parametrize(
    ("said", "launcher"),
    [
        ("#SBATCH --nodes=2", "slurm"),
        ("提交方式是 sbatch job.sh", "slurm"),
        ("We run it as a Kubeflow PyTorchJob.", "kubernetes"),
        ("在 k8s 上跑", "kubernetes"),
        ("mpirun -np 16 -H a:8,b:8 python train.py", "mpi"),
        (f"(RayWorkerWrapper pid=144878, ip=10.5.1.3) {TIMEOUT}", "ray"),
        ("Pytorch Estimator with ray backend hangs", "ray"),
        ("python -m paddle.distributed.launch --devices 0,1 train.py", "paddle"),
        ("vllm serve Qwen/Qwen3-8B -tp 4", "vllm"),
        ("EngineCore raises EngineDeadError", "vllm"),
        ("python3 -m sglang.launch_server --tp 8", "sglang"),
        ("accelerate launch --num_processes 8 train.py", "accelerate"),
        ("deepspeed --num_gpus 8 train.py", "deepspeed"),
        ("torchrun --nproc-per-node 8 train.py", "torchrun"),
        ("horovodrun -np 4 python train.py", "horovod"),
    ],
)
def test_a_launcher_is_seen(service: Service, said: str, launcher: str) -> None:
    """In commands, scripts, prefixes of lines and a person's words, in both languages."""
    verdict = service.judge(service.read_text(f"{said}\n{TIMEOUT}"))
    assert f"launcher:{launcher}" in verdict.seen


@pytest.mark.parametrize(
    "said",
    ["The array of workers is large.", "训练卡住了", "DeepSpeed ZeRO-3 hangs", "we use accelerate"],
)
def test_a_library_is_no_launcher(service: Service, said: str) -> None:
    """Who names what the code imports has not said how it is started."""
    verdict = service.judge(service.read_text(f"{said}\n{TIMEOUT}"))
    assert not [name for name in verdict.seen if name.startswith("launcher:")]


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("srun -N2 --ntasks-per-node=8 python main.py", "srun --label --output=logs/%x-%j-task%t"),
        ("kubectl get pods", "kubectl logs -l <label>=<job>"),
        ("mpirun -np 16 python main.py", "mpirun --output-filename logs --tag-output"),
        (f"(RayWorkerWrapper pid=1, ip=10.5.1.3) {TIMEOUT}", "ray logs actor --id"),
        ("python -m paddle.distributed.launch main.py", "paddle.distributed.launch --log_dir"),
        ("vllm serve Qwen/Qwen3-8B -tp 4", "VLLM_LOGGING_LEVEL=DEBUG"),
        ("accelerate launch main.py", "accelerate launch --tee 3 --log_dir ./logs"),
        ("deepspeed --num_gpus 8 main.py", "deepspeed --enable_each_rank_log ./logs"),
        ("torchrun --nproc-per-node 8 main.py", "torchrun --log-dir ./logs"),
    ],
)
def test_the_other_ranks_logs_in_the_launcher_s_words(
    service: Service, said: str, command: str, language: Language
) -> None:
    """One rank prints: its peers' logs come first, as the users of that launcher get them."""
    first = service.diagnose_text(f"{said}\n{TIMEOUT}", language=language).next[0]
    assert command in first.command
    assert ("只有一个 rank" if language == "zh" else "Only one rank") in first.why


@pytest.mark.parametrize(
    ("words", "check"),
    [
        ("I tried NCCL_P2P_DISABLE=1, no change. 4x RTX 3090.", "p2p-topology/p2p-off"),
        ("设了 NCCL_P2P_DISABLE=1 也没用，4 张 3090。", "p2p-topology/p2p-off"),
        ("Evaluation hangs; it hangs even with 10 samples.", "collective-mismatch/tiny-eval"),
        ("验证时卡住，10 条数据也卡住。", "collective-mismatch/tiny-eval"),
        ("It hangs on 2 nodes. It hangs on a single node too.", "network-config/one-node"),
        ("两机卡住，单机也会卡住。", "network-config/one-node"),
        ("Set num_workers=0, did not help.", "data-loading-stall/no-workers"),
        ("num_workers=0 也一样卡。", "data-loading-stall/no-workers"),
        ("Raising the timeout to 2 hours did not help.", "timeout-too-short/longer"),
        ("超时时间调到 2 小时还是不行。", "timeout-too-short/longer"),
        ("nccl-tests pass on both nodes.", "network-config/nccl-tests"),
        ("两台机器 nccl-tests 跑得正常。", "network-config/nccl-tests"),
    ],
)
def test_what_somebody_tried_is_no_check(service: Service, words: str, check: str) -> None:
    """A check whose outcome the words tell stands nowhere in the answer, whatever cause leads."""
    checks = {item.id: item for cause in service.knowledge.causes for item in cause.checks}
    answer = service.diagnose_text(f"{words}\n{TIMEOUT}", language="en", top=19)
    shown = {item.tells for cause in answer.causes for item in cause.checks}
    if answer.best_check:
        shown.add(answer.best_check.tells)
    assert checks[check].tells.en not in shown


@pytest.mark.parametrize(
    ("name", "end"),
    [("cut", ""), ("whole", "RuntimeError: CUDA error: unspecified launch failure\n")],
)
def test_the_end_of_a_cut_traceback_is_asked_for(service: Service, name: str, end: str) -> None:
    """A traceback without its exception is missing its end; one that has it is not."""
    text = (
        f"{TIMEOUT}Traceback (most recent call last):\n"
        '  File "train.py", line 609, in <module>\n    main()\n'
        '  File "train.py", line 88, in main\n    step()\n' + end
    )
    reasons = [step.why for step in service.diagnose_text(text, language="en").next]
    assert any(why.startswith("The traceback breaks off") for why in reasons) == (name == "cut")


def test_an_expression_is_checked_when_it_is_read() -> None:
    """What RE2 does not take is named with its launcher."""
    with pytest.raises(DataError, match=r"launchers\.yaml: signs of one"):
        LauncherReader([Launcher(id="one", signs=("(?=a)",))])


def test_several_launchers() -> None:
    """Those seen by signs or by names; each gives what those before it do not."""
    one = Launcher(id="one", signs=("alpha",), commands={"logs": "one logs", "stacks": ""})
    two = Launcher(id="two", shown_by=(("setting:TWO",),), commands={"logs": "x", "env": "two env"})
    reading = LogReading(incident=Incident(), events=(), excerpt="", words="with ALPHA")
    reader = LauncherReader([one, two])
    assert reader.read(reading, ()) == {"launcher:one"}
    seen = reader.read(reading, ("setting:TWO",))
    assert seen == {"launcher:one", "launcher:two"}
    commands = job_commands([one, two], reading, seen)
    assert [commands.get(name, "general") for name in ("logs", "stacks", "env", "else")] == [
        "one logs",
        "",
        "two env",
        "general",
    ]
