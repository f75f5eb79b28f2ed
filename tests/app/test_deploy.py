"""deploy/: what is written there runs the program that is there, with the least it needs.

`make check-deploy` installs the checkers of other projects (Helm, the schemas of Kubernetes,
hadolint, ...); without them the tests that need one are skipped.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from app.api import create_app
from app.api.auth import read_keys
from app.cli.main import VERBS, cli
from app.kubernetes.__main__ import command as failed_jobs_command
from kb.bootstrap import open_service
from kb.settings import Settings, load_settings
from tests.checkers import checker

Manifest = dict[str, Any]
CHART = Path("deploy/helm/timeout-kb")
EVERYTHING = {
    "page": {"exposed": True, "loginHeader": "X-Forwarded-Email"},
    "publicUrl": "https://kb.example.org",
    "env": {"TIMEOUT_KB_LANG": "zh", "TIMEOUT_KB_KEPT_DAYS": 30},
    "envFrom": [{"secretRef": {"name": "slack"}}],
    "siteConfigMap": "site",
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "host": "kb.example.org",
        "annotations": {"a": "b"},
        "tlsSecret": "tls",
    },
    "networkPolicy": {"enabled": True},
    "failedJobs": {"enabled": True, "selector": "diagnose=yes"},
    "monitoring": {"serviceMonitor": True, "rules": True, "dashboard": True},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"operator": "Exists"}],
}


def parsed(words: Sequence[str]) -> click.Context:
    """The context of a command line of ours; what does not parse fails."""
    verb = cli.get_command(click.Context(cli), words[0])
    assert words[0] in VERBS
    assert verb is not None
    return verb.make_context(words[0], list(words[1:]))


# --- the image ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def instructions(root: Path) -> list[tuple[str, str]]:
    """The instructions of the Containerfile, each on one line."""
    text = (root / "deploy" / "Containerfile").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [
        (word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines if line)
    ]


def test_the_image_runs_the_program_without_root(
    instructions: list[tuple[str, str]], root: Path
) -> None:
    """A numbered user, the state on a volume, extras and files that exist, a verb that parses."""
    last = dict(instructions)
    assert re.fullmatch(r"[1-9][0-9]+:[1-9][0-9]+", last["USER"])
    assert last["VOLUME"] == "/state"
    assert json.loads(last["ENTRYPOINT"]) == ["timeout-kb"]
    parsed(json.loads(last["CMD"]))
    assert "/readyz" in last["HEALTHCHECK"]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    (install,) = (rest for word, rest in instructions if word == "RUN" and "pip install" in rest)
    named = re.findall(r"\.\[([a-z,]+)\]", install)[0].split(",")
    assert set(named) <= set(extras["optional-dependencies"])
    ignored = (root / ".dockerignore").read_text().splitlines()
    for word, rest in instructions:
        for source in rest.split()[:-1] if word == "COPY" and "--from" not in rest else ():
            assert (root / source).exists()
            assert f"!{source}" in ignored
    environment = {rest.split("=")[0] for word, rest in instructions if word == "ENV"}
    assert environment == {"PATH"}
    assert "TIMEOUT_KB_HOME=/state" in last["ENV"]


def test_hadolint_finds_nothing(root: Path) -> None:
    """The linter of container files."""
    subprocess.run([checker("hadolint"), str(root / "deploy" / "Containerfile")], check=True)


def test_the_two_services_of_compose_are_shut_in(root: Path) -> None:
    """API and page, one volume, nothing else written, ports of this machine alone."""
    path = root / "deploy" / "compose.yaml"
    compose = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(compose["services"]) == {"api", "page"}
    for service in compose["services"].values():
        parsed(service["command"])
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["volumes"] == ["state:/state"]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    build = compose["services"]["api"]["build"]
    assert (path.parent / build["context"] / build["dockerfile"]).is_file()


def test_servers_on_one_database_are_those_of_the_balancer(root: Path) -> None:
    """Each has the database's address and the shared index; only the balancer can be reached."""
    compose = yaml.safe_load((root / "deploy" / "compose.postgres.yaml").read_text("utf-8"))
    services = compose["services"]
    balanced = re.findall(
        r"^    server \w+ ([\w-]+):", (root / "deploy" / "haproxy.cfg").read_text(), re.MULTILINE
    )
    assert {"database", "balancer", *balanced} == set(services)
    for name in balanced:
        parsed(services[name]["command"])
        assert services[name]["read_only"]
        assert services[name]["environment"]["TIMEOUT_KB_STORE"].endswith("@database/timeout_kb")
        assert services[name]["environment"]["TIMEOUT_KB_GENERATIONS"] == "/generations"
        assert "ports" not in services[name]
    assert all(port.startswith("127.0.0.1:") for port in services["balancer"]["ports"])
    assert "postgres" in (root / "deploy" / "Containerfile").read_text()


@pytest.mark.parametrize("name", ["compose.yaml", "compose.postgres.yaml"])
def test_compose_follows_its_schema(root: Path, name: str) -> None:
    """The compose specification's."""
    words = [checker("check-jsonschema"), "--builtin-schema", "vendor.compose-spec"]
    subprocess.run([*words, str(root / "deploy" / name)], check=True, capture_output=True)


# --- the chart ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def helm() -> Any:
    """Helm."""
    return pytest.importorskip("helm_python")


def rendered(helm: Any, root: Path, values: dict[str, Any]) -> list[Manifest]:
    """The manifests of the chart."""
    with helm.Chart.load(str(root / CHART)) as chart:
        chart.validate_schema(chart.merge_values(values))
        files = chart.render(values, name="kb", namespace="tools")
    return [
        document
        for name, text in sorted(files.items())
        if name.endswith(".yaml")
        for document in yaml.safe_load_all(text)
        if document
    ]


def of_kind(manifests: Sequence[Manifest], kind: str) -> list[Manifest]:
    """The manifests of a kind."""
    return [item for item in manifests if item["kind"] == kind]


def pod_of(manifest: Manifest) -> Manifest:
    """The pod's specification in a StatefulSet or a Deployment."""
    pod: Manifest = manifest["spec"]["template"]["spec"]
    return pod


@pytest.fixture(scope="module", params=[{}, EVERYTHING], ids=["usual", "everything"])
def manifests(helm: Any, root: Path, request: pytest.FixtureRequest) -> list[Manifest]:
    """What the chart makes of the usual values, and of all that can be switched on."""
    return rendered(helm, root, request.param)


def test_helm_finds_nothing_wrong(helm: Any, root: Path) -> None:
    """`helm lint --strict` has no warning."""
    report = helm.lint(str(root / CHART), EVERYTHING, strict=True)
    assert [item for item in report["messages"] if item["severity"] > 1] == []
    assert report["errors"] == []


@pytest.mark.parametrize(
    "values",
    [
        {"pages": {}},
        {"api": {"replicas": 2}},
        {"env": {"NCCL_DEBUG": "INFO"}},
        {"ingress": {"enabled": True}},
        {"publicUrl": "javascript:1"},
        {"failedJobs": {"everySeconds": 0}},
    ],
    ids=str,
)
def test_values_nobody_reads_are_refused(helm: Any, root: Path, values: dict[str, Any]) -> None:
    """A misspelt value is told at the install, not found out later."""
    with pytest.raises(helm.HelmError):
        rendered(helm, root, values)


def test_every_value_is_in_the_schema_and_in_a_template(root: Path) -> None:
    """Of the defaults no key is unknown, and none is read by nobody."""
    values = yaml.safe_load((root / CHART / "values.yaml").read_text())
    schema = json.loads((root / CHART / "values.schema.json").read_text())
    templates = "".join(path.read_text() for path in (root / CHART / "templates").iterdir())
    assert set(schema["properties"]) - {"global"} == set(values)
    for name, value in values.items():
        keys = schema["properties"][name].get("properties", {})
        if keys:
            assert set(keys) == set(value)
        for path in (f"{name}.{key}" for key in keys) if keys else (name,):
            assert f".Values.{path}" in templates, path


def test_manifests_follow_the_schemas_of_kubernetes(manifests: list[Manifest]) -> None:
    """Strictly: unknown fields are refused."""
    validate = pytest.importorskip("kubernetes_validate").validate
    for manifest in manifests:
        if not manifest["apiVersion"].startswith("monitoring.coreos.com"):
            validate(manifest, "1.31", strict=True)


def test_pods_have_no_right_they_do_not_need(manifests: list[Manifest], root: Path) -> None:
    """No root, no writing outside volumes, no capability, no token of the cluster's API."""
    plain = list(yaml.safe_load_all((root / "deploy/kubernetes/failed-jobs.yaml").read_text()))
    workloads = [
        item for item in [*manifests, *plain] if item["kind"] in ("StatefulSet", "Deployment")
    ]
    assert workloads
    for workload in workloads:
        pod = pod_of(workload)
        assert pod["securityContext"]["runAsNonRoot"]
        assert "serviceAccountName" in pod or pod["automountServiceAccountToken"] is False
        volumes = {volume["name"] for volume in pod["volumes"]}
        volumes |= {c["metadata"]["name"] for c in workload["spec"].get("volumeClaimTemplates", [])}
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"]
            assert security["allowPrivilegeEscalation"] is False
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def test_commands_and_settings_of_the_pods_are_ours(manifests: list[Manifest]) -> None:
    """Verbs and options parse, TIMEOUT_KB_* are settings, probes ask paths the servers have."""
    (workload,) = of_kind(manifests, "StatefulSet")
    for container in pod_of(workload)["containers"]:
        parsed(container["args"])
        names = {item["name"]: item["value"] for item in container["env"]}
        load_settings(names)
        probe = container["livenessProbe"]
        path = probe["httpGet"]["path"] if "httpGet" in probe else probe["exec"]["command"][-1]
        assert "/healthz" in path or "/_stcore/health" in path
    for deployment in of_kind(manifests, "Deployment"):
        (container,) = pod_of(deployment)["containers"]
        assert container["command"] == ["python3", "-m", "app.kubernetes"]
        failed_jobs_command.make_context("jobs", list(container["args"]))


def test_the_page_is_reached_only_where_it_is_exposed(helm: Any, root: Path) -> None:
    """It has no login: usually it listens inside its pod alone and no Service leads to it."""
    usual, exposed = (rendered(helm, root, {"page": {"exposed": value}}) for value in (False, True))
    for manifests, ports, host in ((usual, 1, "127.0.0.1"), (exposed, 2, "0.0.0.0")):  # noqa: S104
        (service,) = of_kind(manifests, "Service")
        assert len(service["spec"]["ports"]) == ports
        page = pod_of(of_kind(manifests, "StatefulSet")[0])["containers"][1]
        assert page["args"][2] == host


def test_the_first_keys_are_keys(helm: Any, root: Path, tmp_path: Path) -> None:
    """The server reads the file and knows the keys of the Secret; each install has its own."""
    first, second = (of_kind(rendered(helm, root, {}), "Secret")[0] for _ in range(2))
    data = first["stringData"]
    (tmp_path / "keys.json").write_text(data["keys.json"])
    keys = {key.name: key for key in read_keys(tmp_path / "keys.json")}
    assert {name: key.role for name, key in keys.items()} == {"admin": "admin", "jobs": "read"}
    for name, key in keys.items():
        assert key.digest == hashlib.sha256(data[name].encode()).hexdigest()
        assert re.fullmatch(r"tkb_[A-Za-z0-9]{40}", data[name])
    assert second["stringData"]["admin"] != data["admin"]
    assert of_kind(rendered(helm, root, {"keys": {"existingSecret": "own"}}), "Secret") == []


def test_the_chart_and_the_manifest_give_the_same_rights(helm: Any, root: Path) -> None:
    """Whether jobs are watched with Helm or without; everywhere it is the role of a cluster."""
    text = (root / "deploy" / "kubernetes" / "failed-jobs.yaml").read_text()
    plain = list(yaml.safe_load_all(text))
    here = rendered(helm, root, {"failedJobs": {"enabled": True}})
    everywhere = rendered(helm, root, {"failedJobs": {"enabled": True, "allNamespaces": True}})
    (role,) = of_kind(plain, "Role")
    assert of_kind(here, "Role")[0]["rules"] == role["rules"]
    assert of_kind(everywhere, "ClusterRole")[0]["rules"] == role["rules"]
    assert of_kind(everywhere, "Role") == []
    for manifests in (plain, here):
        (binding,) = of_kind(manifests, "RoleBinding")
        (account,) = of_kind(manifests, "ServiceAccount")
        (deployment,) = of_kind(manifests, "Deployment")
        assert binding["subjects"][0]["name"] == account["metadata"]["name"]
        assert pod_of(deployment)["serviceAccountName"] == account["metadata"]["name"]


def test_the_plain_manifests_follow_the_schemas(root: Path) -> None:
    """All of deploy/kubernetes."""
    program = checker("kubernetes-validate")
    paths = sorted(str(path) for path in (root / "deploy" / "kubernetes").glob("*.yaml"))
    assert paths
    words = [program, "--strict", "--quiet", "-k", "1.31", *paths]
    subprocess.run(words, check=True)


def test_the_chart_is_of_this_version(root: Path) -> None:
    """The image it pulls by default is that of the package's version."""
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    assert yaml.safe_load((root / CHART / "Chart.yaml").read_text())["appVersion"] == version


# --- what is watched ----------------------------------------------------------------------------

NAME = re.compile(r"\btimeout_kb_[a-z_]+")
SELECTED = re.compile(r"\b(timeout_kb_[a-z_]+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\bby \(([a-z, ]+)\)")
LOG = (
    "node1:97:221 [0] NCCL INFO comm 0x55 rank 0 nranks 2 cudaDev 0 busId 1b000 - Init COMPLETE\n"
    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=14217, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 ms\n"
)
SCRAPED = {"job", "instance"}  # labels that Prometheus adds


@pytest.fixture(scope="module")
def printed(built_home: Callable[[], Path]) -> dict[str, set[str]]:
    """The series /metrics prints, with and without a language model, each with its labels."""
    alone = Settings(home=built_home())
    helped = replace(alone, llm_base_url="http://127.0.0.1:1/v1", llm_model="none")
    return {
        sample.name: {label for item in family.samples for label in item.labels}
        for settings in (alone, helped)
        for family in text_string_to_metric_families(metrics_of(settings))
        for sample in family.samples
    }


def metrics_of(settings: Settings) -> str:
    """What /metrics prints after each kind of request."""
    service = open_service(settings)
    local = {"base_url": "http://127.0.0.1:8000", "raise_server_exceptions": False}
    with TestClient(create_app(service, settings), **local) as client:
        for query in ("wait=1", "keep=true"):
            assert client.post(f"/v1/diagnose?{query}", json={"text": LOG}).is_success
        assert client.put("/v1/diagnose", content=LOG).is_success
        assert client.post("/v1/entries", files={"file": ("a.log", LOG.encode())}).is_success
        service.lint = None  # type: ignore[assignment,method-assign]
        assert client.post("/v1/lint", json={"text": "NCCL_DEBUG=INFO"}).status_code == 500
        numbers = client.get("/metrics").text
    service.close()
    return numbers


def expressions(root: Path) -> Iterator[str]:
    """All expressions of the alert rules and of the dashboard."""
    alerts = yaml.safe_load((root / CHART / "files" / "alerts.yaml").read_text())
    yield from (rule["expr"] for group in alerts["groups"] for rule in group["rules"])
    board = json.loads((root / CHART / "files" / "dashboard.json").read_text())
    yield from (target["expr"] for panel in board["panels"] for target in panel["targets"])
    yield from (item["query"]["query"] for item in board["templating"]["list"][1:])


def test_what_is_watched_is_printed(root: Path, printed: dict[str, set[str]]) -> None:
    """Every series and label of an expression stands in /metrics, and every series is watched."""
    watched: set[str] = set()
    for expression in expressions(root):
        names = set(NAME.findall(expression))
        watched |= names
        assert names <= set(printed), expression
        known = SCRAPED.union(*(printed[name] for name in names))
        selected = [
            label.partition("=")[0].rstrip("!~")
            for _, labels in SELECTED.findall(expression)
            for label in labels.split(",")
            if label
        ]
        grouped = [
            label.strip() for part in GROUPED.findall(expression) for label in part.split(",")
        ]
        assert set(selected) | set(grouped) <= known, expression
    counters = {name for name in printed if not name.endswith(("_created", "_count", "_sum"))}
    assert counters - watched == {"timeout_kb_kept", "timeout_kb_answers_kept_bytes"}


def test_prometheus_takes_the_rules(root: Path) -> None:
    """Promtool reads every expression."""
    path = str(root / CHART / "files" / "alerts.yaml")
    subprocess.run([checker("promtool"), "check", "rules", path], check=True, capture_output=True)


def test_panels_of_the_dashboard_do_not_overlap(root: Path) -> None:
    """Each cell of the grid has one panel; ids are unique."""
    board = json.loads((root / CHART / "files" / "dashboard.json").read_text())
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in board["panels"]
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
