"""The Kubernetes API, as far as logs of failed jobs need it: list, read logs, annotate."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from kb.errors import KBError, MissingExtraError, SettingsError

if TYPE_CHECKING:
    import httpx

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PAGE = 250  # objects of an answer
TIMEOUT_S = 30.0  # without a byte
NOT_THERE = 404  # of a kind whose definition is not installed, or an object that is gone
BAD_REQUEST = 400  # of a log: the container never started, or was never restarted


class Owner(msgspec.Struct, frozen=True):
    """Who made an object."""

    kind: str = ""


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """Name, place and notes of an object; `continue_` is the rest of a list."""

    name: str = ""
    namespace: str = ""
    annotations: dict[str, str] | None = None
    owner_references: tuple[Owner, ...] = ()
    continue_: str = msgspec.field(default="", name="continue")


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    """What is true of an object since when."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class Terminated(msgspec.Struct, frozen=True, rename="camel"):
    """How a container ended."""

    exit_code: int = 0
    finished_at: str | None = None


class ContainerState(msgspec.Struct, frozen=True):
    """The state of a container, as far as it ended."""

    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    """A container as it is, and as it was before its last restart."""

    name: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """The parts of a status that tell of an end, of pods and of all kinds of jobs."""

    conditions: tuple[Condition, ...] | None = ()
    container_statuses: tuple[ContainerStatus, ...] | None = ()
    job_status: str = ""
    job_deployment_status: str = ""
    ray_cluster_name: str = ""
    end_time: str | None = None


class ClusterObject(msgspec.Struct, frozen=True):
    """A pod or a job."""

    metadata: Metadata = Metadata()
    status: Status = Status()


class _ObjectList(msgspec.Struct, frozen=True):
    items: tuple[ClusterObject, ...] = ()
    metadata: Metadata = Metadata()


class ClusterError(KBError):
    """The Kubernetes API refused or did not answer."""

    code = "cluster"


class Cluster:
    """A connection to the API server."""

    def __init__(
        self, address: str, *, token: Callable[[], str] = str, authority: Path | None = None
    ) -> None:
        """Talk to `address`; `token` is asked for each request, as the cluster renews it.

        Raises:
            MissingExtraError: httpx is not installed.
        """
        try:
            import httpx
        except ImportError as error:
            raise MissingExtraError(
                "reading Kubernetes needs httpx, which is not installed",
                todo="pip install 'timeout-kb[client]'",
            ) from error
        verify: Any = ssl.create_default_context(cafile=str(authority)) if authority else True
        self._token = token
        self._http = httpx.Client(
            base_url=address, timeout=TIMEOUT_S, verify=verify, trust_env=False
        )

    def __enter__(self) -> Cluster:
        """The connection itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._http.close()

    def objects(
        self, api: str, resource: str, namespace: str, selector: str = ""
    ) -> Iterator[ClusterObject]:
        """All objects of a kind, of one namespace or of all (``""``); none of an unknown kind.

        Raises:
            ClusterError: the API refuses, does not answer, or answers something else.
        """
        place = f"namespaces/{quote(namespace, safe='')}/" if namespace else ""
        params = {"limit": str(PAGE), **({"labelSelector": selector} if selector else {})}
        while True:
            answer = self._send("GET", f"/{api}/{place}{resource}", params=params)
            if answer.status_code == NOT_THERE:
                return
            try:
                page = msgspec.json.decode(_successful(answer).content, type=_ObjectList)
            except msgspec.DecodeError as error:
                raise ClusterError(f"{resource}: no list of Kubernetes: {error}") from error
            yield from page.items
            if not page.metadata.continue_:
                return
            params["continue"] = page.metadata.continue_

    def log(self, pod: Metadata, container: str, *, previous: bool, lines: int, most: int) -> bytes:
        """The last `lines` of a container, of these the last `most` bytes; empty where none is.

        Raises:
            ClusterError: the API refuses or does not answer.
        """
        path = f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"
        params = {"container": container, "tailLines": str(lines)}
        if previous:
            params["previous"] = "true"
        answer = self._send("GET", f"{path}/log", params=params)
        if answer.status_code in (NOT_THERE, BAD_REQUEST):
            return b""
        return _successful(answer).content[-most:]

    def annotate(
        self, api: str, resource: str, job: Metadata, annotations: Mapping[str, str]
    ) -> None:
        """Write annotations of an object, the others stay.

        Raises:
            ClusterError: the API refuses or does not answer.
        """
        path = (
            f"/{api}/namespaces/{quote(job.namespace, safe='')}/{resource}"
            f"/{quote(job.name, safe='')}"
        )
        body = msgspec.json.encode({"metadata": {"annotations": annotations}})
        headers = {"Content-Type": "application/merge-patch+json"}
        answer = self._send("PATCH", path, content=body, headers=headers)
        if answer.status_code != NOT_THERE:  # it was deleted meanwhile
            _successful(answer)

    def _send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        **options: Any,  # noqa: ANN401 - passed on to httpx as they are
    ) -> httpx.Response:
        import httpx

        token = self._token()
        credentials = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            return self._http.request(
                method, path, headers={**credentials, **(headers or {})}, **options
            )
        except httpx.HTTPError as error:
            raise ClusterError(
                f"the Kubernetes API does not answer: {error or type(error).__name__}",
                todo="check the network policy of this pod",
            ) from error


def _successful(answer: httpx.Response) -> httpx.Response:
    """The answer.

    Raises:
        ClusterError: it is a refusal.
    """
    if answer.is_success:
        return answer
    raise ClusterError(
        f"the Kubernetes API answered {answer.status_code} to {answer.request.method} "
        f"{answer.request.url.path}",
        todo="check the role of the service account",
    )


def own_cluster(environ: Mapping[str, str], account: Path = ACCOUNT) -> Cluster:
    """The cluster this pod runs in, as its service account.

    Raises:
        SettingsError: this is no pod with a service account.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT")
    token = account / "token"
    if not host or not token.is_file():
        raise SettingsError(
            "this is no pod with a service account",
            todo="run it in the cluster, or give --api http://127.0.0.1:8001 beside kubectl proxy",
        )
    name = f"[{host}]" if ":" in host else host
    return Cluster(
        f"https://{name}:{port or 443}",
        token=lambda: token.read_text(encoding="ascii").strip(),
        authority=account / "ca.crt",
    )
