"""Which jobs of a cluster failed, and the logs of their pods in one archive.

Labels and states: https://kubernetes.io/docs/concepts/workloads/controllers/job/,
https://www.kubeflow.org/docs/components/trainer/legacy-v1/, https://docs.ray.io/en/latest/cluster/kubernetes/,
https://jobset.sigs.k8s.io/docs/, https://lws.sigs.k8s.io/docs/
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from app.kubernetes.cluster import Cluster, ClusterObject, ContainerStatus
from kb.evidence.capture import SCHEMA, CaptureFile, CaptureManifest, write_capture

LINK = "timeout-kb/diagnosis"  # annotation: where the answer is; `none` set by people: leave it
ENDED = "timeout-kb/diagnosed"  # annotation: which end of the job the answer is of
LEAVE, NO_LOGS = "none", "no-logs"
FAILED_STATES = frozenset({"FAILED", "Failed"})
MAX_PODS = 64  # of a job whose logs are read: a cause shows in some of them
MAX_LINES = 20_000  # of the end of each log
MAX_BYTES = 900_000  # of these; all pods together stay below the server's 64 MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """A kind of job: where it is listed, and the labels of its pods, `{name}` and `{ray}` filled.

    One that `restarts` never ends: its pods are replaced and each failure is an incident.
    """

    name: str
    api: str
    resource: str
    pods: tuple[str, ...]
    restarts: bool = False


KINDS = (
    JobKind(name="Job", api="apis/batch/v1", resource="jobs", pods=("job-name={name}",)),
    JobKind(
        name="PyTorchJob",
        api="apis/kubeflow.org/v1",
        resource="pytorchjobs",
        pods=("training.kubeflow.org/job-name={name}",),
    ),
    JobKind(
        name="MPIJob",
        api="apis/kubeflow.org/v2beta1",
        resource="mpijobs",
        pods=("training.kubeflow.org/job-name={name}",),
    ),
    JobKind(
        name="JobSet",
        api="apis/jobset.x-k8s.io/v1alpha2",
        resource="jobsets",
        pods=("jobset.sigs.k8s.io/jobset-name={name}",),
    ),
    JobKind(
        name="RayJob",
        api="apis/ray.io/v1",
        resource="rayjobs",
        pods=("job-name={name}", "ray.io/cluster={ray}"),  # the driver's output is the submitter's
    ),
    JobKind(
        name="LeaderWorkerSet",
        api="apis/leaderworkerset.x-k8s.io/v1",
        resource="leaderworkersets",
        pods=("leaderworkerset.sigs.k8s.io/name={name}",),
        restarts=True,
    ),
)
KIND_NAMES = frozenset(kind.name for kind in KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedJob:
    """A job that failed, its pods, and when: the same end is diagnosed once."""

    kind: JobKind
    job: ClusterObject
    pods: tuple[ClusterObject, ...]
    ended_at: str

    @property
    def title(self) -> str:
        """Kind, namespace and name."""
        return f"{self.kind.name} {self.job.metadata.namespace}/{self.job.metadata.name}"


def failed_jobs(cluster: Cluster, namespace: str, selector: str) -> Iterator[FailedJob]:
    """The jobs with the labels of `selector` whose last failure nobody has diagnosed.

    Raises:
        ClusterError: the API refuses or does not answer.
    """
    for kind in KINDS:
        for job in cluster.objects(kind.api, kind.resource, namespace, selector):
            if not _is_left_alone(kind, job):
                failed = _failure(cluster, kind, job)
                if failed is not None:
                    yield failed


def _is_left_alone(kind: JobKind, job: ClusterObject) -> bool:
    """Whether a job is told with another, of no concern to us, or diagnosed by somebody else."""
    notes = job.metadata.annotations or {}
    if any(owner.kind in KIND_NAMES for owner in job.metadata.owner_references):
        return True  # what a RayJob, say, made for itself
    return notes.get(LINK) == LEAVE or (not kind.restarts and LINK in notes and ENDED not in notes)


def _failure(cluster: Cluster, kind: JobKind, job: ClusterObject) -> FailedJob | None:
    """The last failure of a job; None where there is none, or it is diagnosed."""
    known = (job.metadata.annotations or {}).get(ENDED, "")
    if kind.restarts:
        pods = tuple(_pods(cluster, kind, job))
        ended = _last_failure(pods)
    else:
        ended = _end_of(job)
        pods = tuple(_pods(cluster, kind, job)) if ended and ended != known else ()
    if not ended or ended == known:
        return None
    return FailedJob(kind=kind, job=job, pods=pods, ended_at=ended)


def _end_of(job: ClusterObject) -> str:
    """When a job failed; empty where it did not, or never ends."""
    for condition in job.status.conditions or ():
        if condition.type == "Failed" and condition.status == "True":
            return condition.last_transition_time or "failed"
    if FAILED_STATES & {job.status.job_status, job.status.job_deployment_status}:
        return job.status.end_time or "failed"
    return ""


def _pods(cluster: Cluster, kind: JobKind, job: ClusterObject) -> Iterator[ClusterObject]:
    seen: set[str] = set()
    for pattern in kind.pods:
        ray = job.status.ray_cluster_name
        if "{ray}" in pattern and not ray:
            continue
        selector = pattern.format(name=job.metadata.name, ray=ray)
        for pod in cluster.objects("api/v1", "pods", job.metadata.namespace, selector):
            if pod.metadata.name not in seen and len(seen) < MAX_PODS:
                seen.add(pod.metadata.name)
                yield pod


def _last_failure(pods: tuple[ClusterObject, ...]) -> str:
    """When a container of `pods` ended badly last; empty where none did."""
    ends = [
        state.terminated.finished_at or ""
        for pod in pods
        for container in pod.status.container_statuses or ()
        for state in (container.state, container.last_state)
        if state.terminated is not None and state.terminated.exit_code
    ]
    return max(ends, default="")


def logs_archive(cluster: Cluster, failed: FailedJob) -> bytes:
    """The logs of a job's pods as one archive that the server reads; empty where there are none.

    Raises:
        ClusterError: the API refuses or does not answer.
    """
    logs = {
        f"{pod.metadata.name}/{container.name}.log": log
        for pod in failed.pods
        for container in pod.status.container_statuses or ()
        if (log := _log_of(cluster, pod, container)).strip()
    }
    if not logs:
        return b""
    manifest = CaptureManifest(
        schema=SCHEMA,
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
        job=failed.job.metadata.name,
        hosts=(),
        files=tuple(CaptureFile(name=name, kind="log") for name in logs),
    )
    return write_capture(manifest, list(logs.values()))


def _log_of(cluster: Cluster, pod: ClusterObject, container: ContainerStatus) -> bytes:
    """What the run that failed printed: the one before a restart, where there was one."""
    restarted = container.last_state.terminated is not None
    for previous in (True, False) if restarted else (False,):
        log = cluster.log(
            pod.metadata, container.name, previous=previous, lines=MAX_LINES, most=MAX_BYTES
        )
        if log.strip():
            return log
    return b""
