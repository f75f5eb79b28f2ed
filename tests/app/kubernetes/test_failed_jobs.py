"""Failed jobs of a cluster, against an API server that lets a client do what its role allows."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from app.kubernetes.__main__ import command
from app.kubernetes.cluster import Cluster, ClusterError, own_cluster
from app.kubernetes.failed_jobs import ENDED, KINDS, LINK, failed_jobs
from kb.errors import SettingsError
from kb.saved import SavedDiagnosis
from kb.service import Service
from kb.settings import Settings

Serve = Callable[[object, Settings], AbstractContextManager[str]]

OOM = "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
WATCHDOG = (
    "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=14217, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 ms\n"
)
FAILED = {"conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": "T1"}]}
PATH = re.compile(
    r"/(?P<api>api/v1|apis/[^/]+/[^/]+)/(?:namespaces/(?P<namespace>[^/]+)/)?"
    r"(?P<resource>[a-z]+)(?:/(?P<name>[^/]+))?(?P<log>/log)?"
)


class FakeApi:
    """Objects by resource, logs by pod, and the rules of a role; two objects a page."""

    def __init__(self, rules: list[dict[str, Any]] | None, sender: str = "") -> None:
        self.objects: dict[str, list[dict[str, Any]]] = {"jobs": [], "pods": []}
        self.logs: dict[tuple[str, bool], str] = {}
        self.rules = rules
        self.sender = sender  # whose token a request has to carry
        self.refused: list[str] = []
        self.requests: list[str] = []

    def add(self, resource: str, name: str, status: Any, **metadata: Any) -> dict[str, Any]:
        """Put an object into namespace ml."""
        item = {"metadata": {"name": name, "namespace": "ml", **metadata}, "status": status}
        self.objects.setdefault(resource, []).append(item)
        return item

    def pod(self, name: str, label: str, log: str, *, previous: str = "", **ended: Any) -> None:
        """Put a pod with one container into the namespace."""
        key, _, value = label.partition("=")
        last = {"terminated": {"exitCode": 1, **ended}} if previous or ended else {}
        status = {"containerStatuses": [{"name": "main", "lastState": last, "ready": False}]}
        self.add("pods", name, status, labels={key: value})
        self.logs |= {(name, False): log, (name, True): previous}

    def allows(self, verb: str, api: str, resource: str) -> bool:
        """Whether the role lets a client do so."""
        group = api.split("/")[1] if api.startswith("apis/") else ""
        return self.rules is None or any(
            verb in rule["verbs"] and resource in rule["resources"] and group in rule["apiGroups"]
            for rule in self.rules
        )

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, Any]:
        """Status and content of an answer."""
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        match = PATH.fullmatch(url.path)
        assert match, target
        resource = "pods/log" if match["log"] else match["resource"]
        verb = {"GET": "get" if match["name"] else "list", "PATCH": "patch"}[method]
        self.requests.append(f"{verb} {resource} {query.get('labelSelector', '')}".strip())
        if not self.allows(verb, match["api"], resource):
            self.refused.append(f"{verb} {match['api']} {resource}")
            return 403, {"kind": "Status", "code": 403}
        if resource == "pods/log":
            log = self.logs.get((match["name"], "previous" in query), "")
            return (200, log.encode()) if log else (400, {"message": "not there"})
        if resource not in self.objects:
            return 404, {"kind": "Status", "code": 404}
        if verb == "patch":
            (item,) = (i for i in self.objects[resource] if i["metadata"]["name"] == match["name"])
            notes = json.loads(body)["metadata"]["annotations"]
            item["metadata"]["annotations"] = {**item["metadata"].get("annotations", {}), **notes}
            return 200, item
        return 200, self._page(resource, match["namespace"], query)

    def _page(self, resource: str, namespace: str | None, query: dict[str, str]) -> dict[str, Any]:
        key, _, value = query.get("labelSelector", "").partition("=")
        items = [
            item
            for item in self.objects[resource]
            if namespace in (None, item["metadata"]["namespace"])
            and (not key or item["metadata"].get("labels", {}).get(key) == value)
        ]
        start = int(query.get("continue", 0))
        rest = {"continue": str(start + 2)} if start + 2 < len(items) else {}
        return {"items": items[start : start + 2], "metadata": {"resourceVersion": "7", **rest}}

    @contextmanager
    def serving(self, certificate: Path | None = None) -> Iterator[tuple[str, int]]:
        """Answer requests on a port of this machine; the address and the port."""
        api = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, content = api.answer(self.command, self.path, body)
                if api.sender and self.headers.get("Authorization") != f"Bearer {api.sender}":
                    status, content = 401, {"code": 401}
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PATCH = answer  # noqa: N815 - the names http.server looks for

            def log_message(self, *_: object) -> None:
                """Nothing on standard error."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            port = server.server_address[1]
            yield f"{'https' if certificate else 'http'}://127.0.0.1:{port}", port
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@pytest.fixture(scope="module")
def rules(root: Path) -> list[dict[str, Any]]:
    """The rules of the role that deploy/kubernetes gives the program."""
    text = (root / "deploy" / "kubernetes" / "failed-jobs.yaml").read_text(encoding="utf-8")
    (role,) = (item for item in yaml.safe_load_all(text) if item["kind"] == "Role")
    listed: list[dict[str, Any]] = role["rules"]
    return listed


@pytest.fixture
def api(rules: list[dict[str, Any]]) -> FakeApi:
    """A cluster with Jobs alone whose role is the shipped one."""
    return FakeApi(rules)


@pytest.fixture(scope="module")
def server(real: Service, serve: Serve) -> Iterator[str]:
    """A server that diagnoses."""
    with serve(real, real.settings) as address:
        yield address


Run = Callable[..., "tuple[int, str]"]


@pytest.fixture
def run(api: FakeApi, server: str) -> Iterator[Run]:
    """Runs one round against the cluster and the server."""
    with api.serving() as (address, _):

        def go(*words: str, server: str = server) -> tuple[int, str]:
            result = CliRunner().invoke(
                command, ["--api", address, "--namespace", "ml", *words], env={"TKB_URL": server}
            )
            return result.exit_code, result.output

        yield go


def test_a_failed_job_is_diagnosed_once_from_all_its_pods(
    api: FakeApi, run: Run, real: Service
) -> None:
    """The run before a restart and the others are one incident; then there is nothing to do."""
    job = api.add("jobs", "train", FAILED)
    api.add("jobs", "fine", {"conditions": [{"type": "Complete", "status": "True"}]})
    api.add("jobs", "runs", {})
    api.pod("train-0", "job-name=train", "restarted\n", previous=OOM)
    api.pod("train-1", "job-name=train", WATCHDOG)
    api.pod("train-2", "job-name=train", "")
    api.pod("other-0", "job-name=other", "nothing of it\n")
    code, output = run()
    assert (code, api.refused) == (0, [])
    notes = job["metadata"]["annotations"]
    assert notes[ENDED] == "T1"
    assert output.startswith("Job ml/train: ")
    assert output.rstrip().endswith(notes[LINK])
    body = real.store.records.get_diagnosis(notes[LINK].rpartition("/")[2]).body
    saved = msgspec.json.decode(body, type=SavedDiagnosis)
    assert saved.en.causes[0].id == "rank-crash"
    assert saved.reading.incident.bytes == len(OOM + WATCHDOG)
    api.requests.clear()
    assert run() == (0, "")
    assert not [request for request in api.requests if "pods" in request or "patch" in request]


RAY = {"jobStatus": "FAILED", "rayClusterName": "r-1", "endTime": "T2"}
CUSTOM = {
    "PyTorchJob": (FAILED, "training.kubeflow.org/job-name=train"),
    "MPIJob": (FAILED, "training.kubeflow.org/job-name=train"),
    "JobSet": (FAILED, "jobset.sigs.k8s.io/jobset-name=train"),
    "RayJob": (RAY, "ray.io/cluster=r-1"),
    "LeaderWorkerSet": ({}, "leaderworkerset.sigs.k8s.io/name=train"),
}


@pytest.mark.parametrize("kind", KINDS[1:], ids=lambda kind: kind.name)
def test_jobs_of_operators_are_found(api: FakeApi, run: Run, kind: Any) -> None:
    """By their own states and labels; the role allows it, and each end is diagnosed once."""
    status, label = CUSTOM[kind.name]
    job = api.add(kind.resource, "train", status)
    api.pod("train-0", label, OOM + WATCHDOG, previous=OOM + WATCHDOG, finishedAt="T2")
    code, output = run()
    assert (code, api.refused) == (0, [])
    assert output.startswith(f"{kind.name} ml/train: ")
    assert job["metadata"]["annotations"][ENDED] == ("T1" if status is FAILED else "T2")
    assert run() == (0, "")


def test_a_set_that_fails_again_is_another_incident(api: FakeApi, run: Run) -> None:
    """A LeaderWorkerSet never ends: a later end of a container is diagnosed anew."""
    job = api.add("leaderworkersets", "serve", {})
    label = "leaderworkerset.sigs.k8s.io/name=serve"
    assert run() == (0, "")
    api.pod("serve-0", label, WATCHDOG, previous=OOM, finishedAt="2026-01-01T00:00:00Z")
    assert run()[1].startswith("LeaderWorkerSet ml/serve: ")
    first = job["metadata"]["annotations"][LINK]
    assert run() == (0, "")
    api.pod("serve-1", label, WATCHDOG, previous=OOM, finishedAt="2026-01-02T00:00:00Z")
    assert run()[0] == 0
    assert job["metadata"]["annotations"][LINK] != first


def test_what_others_own_or_did_is_left_alone(api: FakeApi, run: Run) -> None:
    """A RayJob's own submitter, a job with another answer, and one people marked."""
    api.add("jobs", "r-1", FAILED, ownerReferences=[{"kind": "RayJob", "name": "r"}])
    api.add("jobs", "by-hand", FAILED, annotations={LINK: "https://kb.example.org/?d=1"})
    api.add("jobs", "ours", FAILED, annotations={LINK: "none"})
    cron = api.add("jobs", "cron-1", FAILED, ownerReferences=[{"kind": "CronJob"}])
    assert run()[1] == "Job ml/cron-1: its pods have no logs any more\n"
    assert cron["metadata"]["annotations"] == {LINK: "no-logs", ENDED: "T1"}


def test_labels_choose_jobs(api: FakeApi, run: Run) -> None:
    """With a selector only jobs that carry the label are looked at."""
    api.add("jobs", "a", FAILED, labels={"diagnose": "yes"})
    api.add("jobs", "b", FAILED)
    assert run("--selector", "diagnose=yes")[1].startswith("Job ml/a: ")


def test_a_server_that_does_not_answer_leaves_the_job_for_later(api: FakeApi, run: Run) -> None:
    """Exit code 1, nothing written; the next round has the job again."""
    job = api.add("jobs", "train", FAILED)
    api.pod("train-0", "job-name=train", OOM)
    code, output = run(server="http://127.0.0.1:1")
    assert code == 1
    assert "error: Job ml/train: " in output
    assert "annotations" not in job["metadata"]
    assert run()[0] == 0


def test_a_refusal_says_what_the_role_lacks(api: FakeApi, run: Run) -> None:
    """The path that was refused is named, and the account to look at."""
    api.rules = []
    code, output = run()
    assert code == 1
    assert "answered 403 to GET /apis/batch/v1/namespaces/ml/jobs" in output
    assert "role of the service account" in output


def test_the_role_holds_nothing_more(rules: list[dict[str, Any]]) -> None:
    """Kinds that are listed and annotated, pods that are listed, logs that are read."""
    granted = {
        (group, resource): set(rule["verbs"])
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    needed = {(kind.api.split("/")[1], kind.resource): {"list", "patch"} for kind in KINDS}
    assert granted == {**needed, ("", "pods"): {"list"}, ("", "pods/log"): {"get"}}


# --- the pod's own account ----------------------------------------------------------------------


@pytest.fixture
def account(tmp_path: Path) -> Path:
    """A service account's folder, its authority being the certificate of 127.0.0.1."""
    pair = tmp_path / "pair.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    words += ["-nodes", "-days", "2", "-subj", "/CN=fake", "-addext", "subjectAltName=IP:127.0.0.1"]
    words += ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "ca.crt")]
    subprocess.run(words, check=True, capture_output=True)
    pair.write_text((tmp_path / "key.pem").read_text() + (tmp_path / "ca.crt").read_text())
    (tmp_path / "token").write_text("first\n")
    return tmp_path


def test_a_pod_speaks_as_its_account(account: Path) -> None:
    """Over TLS that the cluster's authority signs, with the token as it is now."""
    api = FakeApi(None, sender="first")
    api.add("jobs", "train", FAILED)
    with api.serving(account / "pair.pem") as (_, port):
        environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
        with own_cluster(environ, account) as cluster:
            assert [item.title for item in failed_jobs(cluster, "ml", "")] == ["Job ml/train"]
            api.sender = "renewed"
            with pytest.raises(ClusterError, match="answered 401"):
                list(failed_jobs(cluster, "ml", ""))
            (account / "token").write_text("renewed\n")
            assert len(list(failed_jobs(cluster, "ml", ""))) == 1
        with (
            Cluster(f"https://127.0.0.1:{port}") as stranger,
            pytest.raises(ClusterError, match="certificate"),
        ):
            list(failed_jobs(stranger, "ml", ""))


def test_outside_a_cluster_it_says_so(tmp_path: Path) -> None:
    """Neither address nor token: the error says how to go on."""
    with pytest.raises(SettingsError, match="no pod with a service account"):
        own_cluster({}, tmp_path)
