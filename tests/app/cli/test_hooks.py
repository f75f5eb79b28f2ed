"""The hooks of data/hooks, run for real against a server that wants a key."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml

from app.api.auth import add_key, keys_path, remove_key
from kb.saved import SavedDiagnosis
from kb.settings import Settings
from kb.types.entries import RankPlace
from tests.checkers import checker

if TYPE_CHECKING:
    from kb.service import Service

Serve = Callable[[object, Settings], AbstractContextManager[str]]

DEADLINE_S = 60
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
WATCHDOG = (
    "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=14217, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 ms\n"
)
OOM_OF_RANK = f"[rank0]: {OOM}"
NCCL_INIT = (
    "node1:97:221 [0] NCCL INFO comm 0x55 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 "
    "commId 0x47 - Init COMPLETE\n"
)
HOOKS = Path(__file__).resolve().parents[3] / "data" / "hooks"
SHELL = sorted(path.name for path in HOOKS.glob("*.sh"))
LINES = re.search(r"```sh\n(.*?)```", (HOOKS / "README.md").read_text(), re.DOTALL)
ONE_LINERS = LINES[1].splitlines() if LINES else []


@pytest.fixture(scope="module")
def key(real: Service) -> str:
    """A key that may read, as hooks have."""
    return add_key(keys_path(real.settings), "hooks", "read", per_minute=100_000)


@pytest.fixture(scope="module")
def address(real: Service, key: str, serve: Serve) -> Iterator[str]:
    """The address of a server that wants the key."""
    with serve(real, real.settings) as address:
        yield address


class Cluster:
    """A search path of programs made for one test, and what they were called with."""

    def __init__(self, folder: Path, address: str, key: str) -> None:
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.environment = {
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "TMPDIR": str(folder),
            "TKB_URL": address,
            "TKB_KEY": key,
        }

    def program(self, name: str, script: str) -> None:
        """Put a program on the path; it writes down its arguments first."""
        path = self.programs / name
        calls = f"{self.folder}/{name}.calls"
        remember = f"printf '%s ' \"$@\" | tr '\\n' ' ' >>{calls}; echo >>{calls}"
        path.write_text(f"#!/bin/sh\n{remember}\n{script}\n")
        path.chmod(0o755)

    def calls(self, name: str) -> list[str]:
        """The arguments a program was called with, a line a call."""
        path = self.folder / f"{name}.calls"
        return [call.strip() for call in path.read_text().splitlines()] if path.exists() else []

    def run(self, hook: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a hook as a POSIX shell does."""
        return subprocess.run(
            ["/bin/sh", str(HOOKS / hook), *words],
            cwd=self.folder,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )


@pytest.fixture
def cluster(tmp_path: Path, address: str, key: str) -> Cluster:
    """An empty cluster."""
    return Cluster(tmp_path, address, key)


@pytest.mark.parametrize("name", SHELL)
def test_scripts_are_posix_shell_without_faults(name: str) -> None:
    """Every shell parses them, who copies one can run it, shellcheck has nothing to say."""
    path = HOOKS / name
    assert path.stat().st_mode & 0o111
    subprocess.run(["/bin/sh", "-n", str(path)], check=True)
    subprocess.run([checker("shellcheck"), str(path)], check=True)


# --- Slurm --------------------------------------------------------------------------------------


def slurm(
    cluster: Cluster, *, state: str = "FAILED", code: str = "1:0", name: str = "train-42.log"
) -> Path:
    """A node whose job 42 of user `ana` ended so; its log."""
    log = cluster.folder / name
    log.write_text(OOM + WATCHDOG)
    cluster.program(
        "scontrol",
        f"echo 'JobId=42 JobName=train\n   UserId=ana(1000) GroupId=ana(1000)\n"
        f"   JobState={state} Reason=None ExitCode={code}\n   BatchHost=node1\n"
        f"   StdErr={log}\n   StdIn=/dev/null\n   StdOut={log}\n   Power='",
    )
    cluster.program("runuser", f'env >>{cluster.folder}/owner.env; shift 3; exec "$@"')
    cluster.program("logger", "cat >&2")
    return log


EPILOG = {"SLURM_JOB_ID": "42", "SLURM_JOB_USER": "ana", "SLURMD_NODENAME": "node1"}


@pytest.mark.parametrize("name", ["train-42.log", "my runs  42.log"])
def test_the_epilog_leaves_the_answer_beside_the_log_of_a_failed_job(
    cluster: Cluster, name: str
) -> None:
    """As the job's owner, with the key out of sight of all users, and always with code 0."""
    log = slurm(cluster, name=name)
    done = cluster.run("slurm-epilog.sh", **EPILOG)
    assert done.returncode == 0, done.stderr
    assert "rank-crash" in log.with_name(f"{name}.diagnosis.txt").read_text()
    calls = cluster.calls("runuser")
    assert [call.split()[:4] for call in calls] == [
        ["-u", "ana", "--", word] for word in ("test", "cat", "sh")
    ]
    seen = (cluster.folder / "owner.env").read_text()
    assert "SLURM_JOB_USER=ana" in seen
    assert cluster.environment["TKB_KEY"] not in seen + "".join(calls)


@pytest.mark.parametrize(
    ("state", "code", "variables"),
    [
        pytest.param("COMPLETED", "0:0", {}, id="completed"),
        pytest.param("COMPLETING", "0:0", {}, id="completing-well"),
        pytest.param("CANCELLED", "0:15", {}, id="cancelled"),
        pytest.param("FAILED", "1:0", {"SLURMD_NODENAME": "node2"}, id="other-node"),
        pytest.param("FAILED", "1:0", {"SLURM_JOB_ID": ""}, id="no-job"),
        pytest.param("FAILED", "1:0", {"TKB_URL": "http://127.0.0.1:1"}, id="no-server"),
        pytest.param("FAILED", "1:0", {"TKB_KEY": "tkb_wrong"}, id="wrong-key"),
    ],
)
def test_the_epilog_never_takes_a_node_down(
    cluster: Cluster, state: str, code: str, variables: dict[str, str]
) -> None:
    """Code 0 and no answer where there is nothing to do or nobody to ask."""
    slurm(cluster, state=state, code=code)
    done = cluster.run("slurm-epilog.sh", **{**EPILOG, **variables})
    assert done.returncode == 0
    assert list(cluster.folder.glob("*.diagnosis.txt")) == []


@pytest.fixture
def writing_key(real: Service) -> Iterator[str]:
    """A key that may add incidents; those are gone after the test."""
    yield add_key(keys_path(real.settings), "board", "write", per_minute=100_000)
    remove_key(keys_path(real.settings), "board")
    real.delete([record.id for record in real.incidents()])


@pytest.mark.parametrize("long", [False, True], ids=["whole", "start and end"])
def test_the_epilog_feeds_the_board_where_asked(
    cluster: Cluster, real: Service, writing_key: str, long: bool
) -> None:
    """The failed job is an incident of its host and GPU, read as the owner; the answer is there."""
    log = slurm(cluster)
    filler = "step 1: loss 1.0\n" * (2_000_000 if long else 1)
    log.write_text(NCCL_INIT + filler + OOM_OF_RANK + WATCHDOG)
    variables = {**EPILOG, "TKB_KEY": writing_key, "TKB_INCIDENTS": "1"}
    done = cluster.run("slurm-epilog.sh", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    (record,) = real.incidents()
    assert record.culprits == (RankPlace(rank=0, host="node1", gpu="0 (1b:00)"),)
    assert log.with_name(f"{log.name}.diagnosis.txt").exists()
    assert writing_key not in "".join(cluster.calls("runuser"))


def test_the_epilog_only_diagnoses_unless_asked(cluster: Cluster, real: Service) -> None:
    """Without the switch nothing is added, and a key that may only read is no failure."""
    slurm(cluster)
    assert cluster.run("slurm-epilog.sh", **EPILOG).returncode == 0
    assert cluster.run("slurm-epilog.sh", **EPILOG, TKB_INCIDENTS="1").returncode == 0
    assert real.incidents() == ()


@pytest.mark.parametrize(("code", "told"), [(7, True), (0, False)])
def test_a_job_script_ends_its_log_with_the_diagnosis(
    cluster: Cluster, code: int, told: bool
) -> None:
    """The job's exit code stays; only a failed job is diagnosed."""
    slurm(cluster, name="train [42].log")  # signs that curl takes for a range of names
    cluster.program("srun", f"exit {code}")
    done = cluster.run("slurm-job.sh", "python", "train.py", SLURM_JOB_ID="42")
    assert done.returncode == code
    assert ("rank-crash" in done.stdout) == told
    assert cluster.calls("srun") == ["python train.py"]


def test_a_job_script_without_a_server_says_how_to_go_on(cluster: Cluster) -> None:
    """The exit code stays, and the line to run later is printed."""
    log = slurm(cluster)
    cluster.program("srun", "exit 9")
    done = cluster.run("slurm-job.sh", SLURM_JOB_ID="42", TKB_URL="http://127.0.0.1:1")
    assert done.returncode == 9
    assert f"timeout-kb diagnose '{log}'" in done.stdout


@pytest.mark.parametrize(
    ("verdict", "variables", "requeued"),
    [
        pytest.param(0, {"TKB_REQUEUE": "3"}, True, id="may help"),
        pytest.param(4, {"TKB_REQUEUE": "3"}, False, id="hopeless"),
        pytest.param(0, {}, False, id="nobody asked"),
        pytest.param(0, {"TKB_REQUEUE": "3", "SLURM_RESTART_COUNT": "3"}, False, id="often enough"),
    ],
)
def test_a_failed_job_starts_again_where_that_may_help(
    cluster: Cluster, verdict: int, variables: dict[str, str], requeued: bool
) -> None:
    """It is watched under its id, and its attempts decide; the exit code stays the job's."""
    slurm(cluster)
    cluster.program("timeout-kb", f'case "$1" in watch) exit 7 ;; *) exit {verdict} ;; esac')
    done = cluster.run("slurm-job.sh", "python", "train.py", SLURM_JOB_ID="42", **variables)
    assert done.returncode == 7
    watched, *others = cluster.calls("timeout-kb")
    assert watched == (
        f"watch --job 42 --hang-after 300 --post {cluster.environment['TKB_URL']} "
        "-- srun python train.py"
    )
    may_ask = ["diagnose --job 42 --retry-verdict"] if len(variables) == 1 else []
    assert others == may_ask
    assert ("requeue 42" in cluster.calls("scontrol")) == requeued


def test_the_prolog_sets_what_the_task_has_not(cluster: Cluster) -> None:
    """Lines that Slurm reads; what a task sets itself stays."""
    done = cluster.run("slurm-task-prolog.sh", SLURM_JOB_ID="42", TORCH_NCCL_TRACE_BUFFER_SIZE="9")
    prefix = f"{cluster.folder}/fr_42_"
    assert done.stdout.splitlines() == [
        "export TORCH_NCCL_DUMP_ON_TIMEOUT=1",
        f"export TORCH_FR_DUMP_TEMP_FILE={prefix}",
        f"export TORCH_NCCL_DEBUG_INFO_TEMP_FILE={prefix}",
        f"export TORCH_NCCL_DEBUG_INFO_PIPE_FILE={prefix}",
    ]


# --- torchrun -----------------------------------------------------------------------------------


def torchrun(cluster: Cluster, code: int) -> None:
    """A torchrun that prints a log and ends so; it shows where its dumps go."""
    (cluster.folder / "output").write_text(OOM + WATCHDOG)
    cluster.program(
        "torchrun",
        f'cat {cluster.folder}/output; echo "dumps: $TORCH_FR_DUMP_TEMP_FILE"; exit {code}',
    )


@pytest.mark.parametrize("installed", [True, False], ids=["watch", "curl"])
@pytest.mark.parametrize(("code", "told"), [(7, True), (0, False)])
def test_torchrun_is_watched_with_and_without_the_program(
    cluster: Cluster, root: Path, installed: bool, code: int, told: bool
) -> None:
    """Output and exit code are torchrun's; a failure is diagnosed by the server, on stderr."""
    torchrun(cluster, code)
    if installed:
        python = f"{sys.executable} -c 'from app.cli.main import main; main()'"
        cluster.program("timeout-kb", f'PYTHONPATH={root} exec {python} "$@"')
    variables = {"TIMEOUT_KB_HOME": str(cluster.folder / "home")}
    done = cluster.run("torchrun-watch.sh", "--nproc-per-node", "8", "train.py", **variables)
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith(OOM + WATCHDOG + f"dumps: {cluster.folder}/timeout-kb-")
    assert ("rank-crash" in done.stderr) == told
    assert cluster.calls("torchrun") == ["--nproc-per-node 8 train.py"]


# In place of the program: `watch ... -- COMMAND` runs it, `diagnose ... FILE` keeps the file.
FAKE_PROGRAM = """\
if [ "$1" = diagnose ]; then
    for file; do :; done
    cp "$file" {folder}/diagnosed
    exit 0
fi
while [ "$1" != -- ]; do shift; done
shift
"$@" >{folder}/output
code=$?
echo $code >{folder}/watched
exit $code
"""


def test_the_files_of_the_ranks_are_diagnosed(cluster: Cluster, real: Service) -> None:
    """Each rank writes its own; those of an earlier run in the same folder take no part."""
    logs = cluster.folder / "logs"
    (logs / "old").mkdir(parents=True)
    (logs / "old" / "stderr.log").write_text(WATCHDOG)
    os.utime(logs / "old" / "stderr.log", (1000, 1000))
    folder = f"{logs}/none_x/attempt_0/0"
    (cluster.folder / "oom").write_text(OOM_OF_RANK)
    cluster.program(
        "torchrun",
        f"sleep 0.1; mkdir -p {folder}; cp {cluster.folder}/oom {folder}/stderr.log; exit 7",
    )
    cluster.program("timeout-kb", FAKE_PROGRAM.format(folder=cluster.folder))
    done = cluster.run("torchrun-watch.sh", "train.py", TKB_LOG_DIR=str(logs))
    assert done.returncode == 7, done.stderr
    assert cluster.calls("torchrun") == [f"--log-dir {logs} --redirects 3 --tee 3 train.py"]
    reading = real.read_paths([cluster.folder / "diagnosed"])
    assert reading.incident.bytes == len(OOM_OF_RANK)
    assert reading.incident.first_error is not None


# --- Ray ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "code", "told"),
    [
        pytest.param(["PENDING", "RUNNING", "SUCCEEDED"], 0, False, id="good"),
        pytest.param(["RUNNING", "FAILED"], 1, True, id="failed"),
        pytest.param(["RUNNING", "", "", "FAILED"], 1, True, id="the head restarts"),
        pytest.param(["STOPPED"], 1, False, id="stopped"),
        pytest.param([], 2, False, id="unknown"),
    ],
)
def test_a_job_of_ray_is_diagnosed_when_it_fails(
    cluster: Cluster, states: list[str], code: int, told: bool
) -> None:
    """Its log comes by the Job API, with the message where that breaks off; misses are borne."""
    log = json.dumps({"logs": OOM + "\x1b]0;title\x07" + WATCHDOG})
    (cluster.folder / "logs.json").write_text(log)
    for number, state in enumerate(states):
        answer = json.dumps({"status": state, "message": "Job entrypoint command failed"})
        (cluster.folder / f"state{number}").write_text(answer if state else "")
    cluster.program(
        "curl",
        f"""\
case "$*" in
*/api/jobs/train-1/logs) cat {cluster.folder}/logs.json ;;
*/api/jobs/train-1)
    number=$(cat {cluster.folder}/number 2>/dev/null || echo 0)
    echo $((number + 1)) >{cluster.folder}/number
    [ -s {cluster.folder}/state$number ] && cat {cluster.folder}/state$number ;;
*) exec /usr/bin/curl "$@" ;;
esac""",
    )
    done = cluster.run("ray-job.sh", "train-1", POLL_S="0")
    assert done.returncode == code, done.stderr
    assert ("rank-crash" in done.stdout) == told
    assert cluster.environment["TKB_KEY"] not in " ".join(cluster.calls("curl"))


def test_an_id_of_ray_is_no_path(cluster: Cluster) -> None:
    """Nothing is asked under a name that leads elsewhere."""
    cluster.program("curl", "exit 1")
    assert cluster.run("ray-job.sh", "../version").returncode == 2
    assert cluster.calls("curl") == []


# --- servers and sidecars -----------------------------------------------------------------------

# In place of `timeout-kb watch --log LOG ... -- COMMAND`: runs the command, its output to LOG.
FAKE_WATCH = """\
[ "$1" = watch ] || { echo "diagnosed $(tail -n 1 "$4")" >&2; exit 0; }
log=$3
while [ "$1" != -- ]; do shift; done
shift
exec "$@" >"$log"
"""


@pytest.mark.parametrize(
    ("on_dead", "code"), [("", 5), ("stop", 143)], ids=["goes on", "is stopped"]
)
def test_a_dead_engine_is_diagnosed_while_the_server_runs(
    cluster: Cluster, on_dead: str, code: int
) -> None:
    """Once; the server's end and its exit code are its own unless it is to be stopped."""
    cluster.program("timeout-kb", FAKE_WATCH)
    cluster.program(
        "vllm", "echo ready; echo 'vllm.v1.engine.exceptions.EngineDeadError: x'; sleep 2; exit 5"
    )
    variables = {"LOOK_S": "0.1", "SETTLE_S": "0.1", "TKB_ON_DEAD": on_dead}
    done = cluster.run("server-watch.sh", "vllm", "serve", "m", **variables)
    assert done.returncode == code, done.stderr
    assert done.stderr.count("the engine is dead, the server still runs") == 1
    assert "diagnosed vllm.v1.engine.exceptions.EngineDeadError: x" in done.stderr
    assert cluster.calls("vllm") == ["serve m"]


def test_signals_reach_the_server(cluster: Cluster) -> None:
    """What ends the hook ends the server, whose exit code it gives."""
    cluster.program("timeout-kb", FAKE_WATCH)
    cluster.program(
        "vllm", f"trap 'exit 9' TERM; touch {cluster.folder}/up; while :; do sleep 0.1; done"
    )
    with subprocess.Popen(
        ["/bin/sh", str(HOOKS / "server-watch.sh"), "vllm"],
        env={**cluster.environment, "LOOK_S": "0.1"},
    ) as process:
        while not (cluster.folder / "up").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 9


@pytest.mark.parametrize("code", [0, 7])
def test_a_job_is_followed_by_its_log(cluster: Cluster, code: int) -> None:
    """All it wrote and its exit code are watched under its name; the sidecar itself ends well."""
    cluster.program("timeout-kb", FAKE_PROGRAM.format(folder=cluster.folder))
    log = cluster.folder / "job.log"
    log.write_text(OOM_OF_RANK + WATCHDOG)
    (cluster.folder / "job.log.exit").write_text(f"{code}\n")
    variables = {"TKB_URL": "", "JOB_NAME": "train", "TKB_DUMPS": "/logs"}
    done = cluster.run("follow.sh", str(log), **variables)
    assert done.returncode == 0
    assert (cluster.folder / "watched").read_text() == f"{code}\n"
    assert (cluster.folder / "output").read_text() == OOM_OF_RANK + WATCHDOG
    (call,) = cluster.calls("timeout-kb")
    assert call.startswith("watch --hang-after 600 --job train --dump /logs -- sh -c")


# --- Kubernetes ---------------------------------------------------------------------------------


def kubernetes(cluster: Cluster) -> None:
    """Jobs: one that failed, one known already, one that is fine; pods of the first."""
    cluster.program(
        "kubectl",
        f"""\
case "$*" in
*"get jobs"*) printf 'train|True|\\nold|True|https://kb.example.org/?d=1\\nfine||\\n' ;;
*"get pods"*) printf 'pod/train-0\\npod/train-1\\npod/train-2\\n' ;;
*"logs pod/train-0 --previous"*) cat {cluster.folder}/previous ;;
*"logs pod/train-1 --previous"*) exit 1 ;;
*"logs pod/train-1"*) cat {cluster.folder}/current ;;
*"logs pod/train-2"*) exit 1 ;;
*"annotate job train"*) ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac""",
    )
    (cluster.folder / "previous").write_text(OOM)
    (cluster.folder / "current").write_text(WATCHDOG)


@pytest.mark.parametrize("words", [(), ("train",)], ids=["all-failed", "named"])
def test_failed_jobs_are_diagnosed_from_all_their_pods(
    cluster: Cluster, real: Service, words: tuple[str, ...]
) -> None:
    """Logs before the restart and of pods never restarted are one run; the Job gets the link."""
    kubernetes(cluster)
    done = cluster.run("kubernetes-failed-jobs.sh", *words, NAMESPACE="ml")
    assert done.returncode == 0, done.stderr
    assert "--- Job train" in done.stdout
    assert "rank-crash" in done.stdout
    assert "--- Job old" not in done.stdout
    (call,) = [call for call in cluster.calls("kubectl") if "annotate" in call]
    found = re.fullmatch(
        r"--namespace ml annotate job train --overwrite timeout-kb/diagnosis=(\S+)", call
    )
    assert found
    identifier = found[1].removeprefix(f"{cluster.environment['TKB_URL']}/v1/diagnoses/")
    assert real.store.records.get_diagnosis(identifier).id == identifier
    assert all(call.startswith("--namespace ml ") for call in cluster.calls("kubectl"))


def test_of_long_logs_the_end_is_sent(cluster: Cluster, real: Service) -> None:
    """Pods are asked for their last lines, and of these the last bytes go out."""
    kubernetes(cluster)
    (cluster.folder / "previous").write_text("step 100 loss 2.5\n" * 10_000 + OOM)
    done = cluster.run("kubernetes-failed-jobs.sh", "train", MAX_LINES="50", MAX_BYTES="1000")
    assert done.returncode == 0, done.stderr
    logs = [call for call in cluster.calls("kubectl") if call.startswith("logs ")]
    assert logs
    assert all(call.endswith("--tail 50") for call in logs)
    (call,) = [call for call in cluster.calls("kubectl") if "annotate" in call]
    body = real.store.records.get_diagnosis(call.rpartition("/")[2]).body
    kept = msgspec.json.decode(body, type=SavedDiagnosis)
    assert kept.reading.incident.bytes == 1000 + len(WATCHDOG)
    assert kept.en.causes[0].id == "rank-crash"


def test_a_job_without_logs_or_a_server_is_not_marked(cluster: Cluster) -> None:
    """Code 1, and the Job is left for the next time."""
    kubernetes(cluster)
    done = cluster.run("kubernetes-failed-jobs.sh", TKB_URL="http://127.0.0.1:1")
    assert done.returncode == 1
    (cluster.folder / "previous").write_text("")
    (cluster.folder / "current").write_text("")
    done = cluster.run("kubernetes-failed-jobs.sh", "train")
    assert done.returncode == 1
    assert "has no logs any more" in done.stderr
    assert [call for call in cluster.calls("kubectl") if "annotate" in call] == []


def test_the_sidecar_runs_what_is_shipped(root: Path) -> None:
    """The script is a hook, volumes are defined, and both containers name the same job and log."""
    job = yaml.safe_load((root / "deploy" / "kubernetes" / "sidecar.yaml").read_text())
    pod: dict[str, Any] = job["spec"]["template"]["spec"]
    (sidecar,), (train,) = pod["initContainers"], pod["containers"]
    assert sidecar["restartPolicy"] == "Always"
    assert pod["shareProcessNamespace"]
    _, script, log = sidecar["command"]
    mounts = {item["name"]: item["mountPath"] for item in sidecar["volumeMounts"]}
    assert (HOOKS / script.removeprefix(mounts["hook"] + "/")).is_file()
    assert set(mounts) == {volume["name"] for volume in pod["volumes"]}
    assert f">{log} " in train["args"][0]
    assert f">{log}.exit;" in train["args"][0]
    names = [
        next(item["value"] for item in container["env"] if item["name"] == "JOB_NAME")
        for container in (sidecar, train)
    ]
    assert names[0] == names[1]
    assert sidecar["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_PTRACE"]}


# --- one-liners ---------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ONE_LINERS, ids=lambda line: line[-30:])
def test_the_lines_of_the_readme_work_as_they_stand(
    cluster: Cluster, tmp_path: Path, line: str
) -> None:
    """Each ends with 0 and an answer, once the key is added as the text says."""
    (tmp_path / "key.txt").write_text(f"Authorization: Bearer {cluster.environment['TKB_KEY']}\n")
    for name in ("train.log", "rank0.log", "rank1.log"):
        (tmp_path / name).write_text(OOM + WATCHDOG)
    for rank in (0, 1):
        (tmp_path / f"rank_{rank}").write_text(
            '{"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", '
            '"ranks": "[0, 1]"}}, "entries": []}'
        )
    done = subprocess.run(
        ["/bin/sh", "-c", line.replace("curl -sS", "curl -sS -f -H @key.txt")],
        cwd=tmp_path,
        env=cluster.environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if "keep=true" in line:
        assert re.search(r"^location: /v1/diagnoses/", done.stdout, re.MULTILINE | re.IGNORECASE)
        assert "rank-crash" in (tmp_path / "answer.json").read_text()
    elif "/v1/search" in line:
        assert "checkpoint" in done.stdout
    elif "dump=" not in line:
        assert "rank-crash" in done.stdout


def test_there_are_lines_to_try() -> None:
    """The README holds its block of one-liners."""
    assert len(ONE_LINERS) == 6
