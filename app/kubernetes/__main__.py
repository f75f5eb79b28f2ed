"""``python -m app.kubernetes``: diagnoses failed jobs of a cluster, once or for ever.

It lists Jobs, PyTorchJobs, MPIJobs, JobSets, RayJobs and LeaderWorkerSets, sends the logs of the
pods of those that failed to the server TKB_URL names (key: TKB_KEY), and annotates each job with
the link to its answer: that is how a job is known to be done.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

import click

from app.client import Client
from app.kubernetes.cluster import ACCOUNT, Cluster, own_cluster
from app.kubernetes.failed_jobs import (
    ENDED,
    LINK,
    NO_LOGS,
    FailedJob,
    failed_jobs,
    logs_archive,
)
from app.render.escape import plain
from kb.errors import KBError

SERVER = "http://127.0.0.1:8000"


@click.command()
@click.option("--namespace", default="", help="Of the jobs. Default: that of this pod.")
@click.option("--all-namespaces", is_flag=True, help="Jobs of all namespaces.")
@click.option("--selector", default="", metavar="LABELS", help="Only jobs with these labels.")
@click.option("--every", type=click.IntRange(5, 86_400), metavar="SECONDS", help="Look again.")
@click.option("--api", default="", metavar="URL", help="Of the Kubernetes API: kubectl proxy's.")
def command(
    namespace: str, all_namespaces: bool, selector: str, every: int | None, api: str
) -> None:
    """Diagnose the failed jobs of a Kubernetes cluster from the logs of their pods."""
    place = "" if all_namespaces else namespace or _own_namespace()
    pause = threading.Event()
    while True:
        good = _one_round(os.environ, api, place, selector)
        if every is None:
            sys.exit(0 if good else 1)
        pause.wait(every)


def _own_namespace() -> str:
    path = ACCOUNT / "namespace"
    return path.read_text(encoding="utf-8").strip() if path.is_file() else "default"


def _one_round(environ: Mapping[str, str], api: str, namespace: str, selector: str) -> bool:
    """Diagnose what is there now; False where something went wrong, which is told."""
    try:
        with (
            Cluster(api) if api else own_cluster(environ) as cluster,
            Client(environ.get("TKB_URL") or SERVER, environ.get("TKB_KEY") or None) as client,
        ):
            results = [
                _diagnose(cluster, client, failed)
                for failed in failed_jobs(cluster, namespace, selector)
            ]
    except KBError as error:
        click.echo(f"error: {plain(str(error))}", err=True)
        return False
    return all(results)


def _diagnose(cluster: Cluster, client: Client, failed: FailedJob) -> bool:
    """Diagnose one job and write the link down; False where that failed: it has another round."""
    try:
        link, summary = NO_LOGS, "its pods have no logs any more"
        if archive := logs_archive(cluster, failed):
            with tempfile.NamedTemporaryFile(suffix=".tar.zst") as file:
                file.write(archive)
                file.flush()
                answer = client.keep(Path(file.name))
            server = (os.environ.get("TKB_URL") or SERVER).rstrip("/")
            link = answer.page or f"{server}/v1/diagnoses/{answer.id}"
            summary = f"{answer.diagnosis.summary} {link}"
        annotations = {LINK: link, ENDED: failed.ended_at}
        cluster.annotate(failed.kind.api, failed.kind.resource, failed.job.metadata, annotations)
    except KBError as error:
        click.echo(f"error: {plain(f'{failed.title}: {error}')}", err=True)
        return False
    click.echo(plain(f"{failed.title}: {summary}"))
    return True


if __name__ == "__main__":
    command()
