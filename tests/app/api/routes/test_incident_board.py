"""The team's incidents over real sockets: filters, pages, the board, and numbers for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.kb.incidents.builders import OOM, at, cause, fixed, incident

if TYPE_CHECKING:
    from tests.app.fakes import FakeService

PROBLEM = "application/problem+json"
TIMES = {"added": "2026-11-02T10:00:00Z", "on": "2026-11-02T16:00:00Z"}


@pytest.fixture
def filled(service: FakeService) -> FakeService:
    """Three incidents: two of one GPU, one of them open, and one of nothing known."""
    service.store.upsert(
        [
            incident(
                1,
                causes=cause("rank-crash"),
                signature=(OOM,),
                culprits=at(3, "gpu-07", "3 (1b:00)"),
                labels=("prod",),
                **fixed("Smaller batch", **TIMES),
            ),
            incident(
                2,
                causes=cause("rank-crash"),
                signature=(OOM,),
                culprits=at(11, "gpu-07", "3 (1b:00)"),
                date="2026-11-20",
            ),
            incident(3, date="2026-12-01", project="a/b"),
        ]
    )
    return service


def ids(client: httpx.Client, query: str = "") -> list[str]:
    """The incidents an address lists."""
    answer = client.get(f"/v1/incidents{query}")
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["incident-03", "incident-02", "incident-01"]),
        ("?cause=rank-crash", ["incident-02", "incident-01"]),
        ("?cause=rank-crash&cause=unknown", ["incident-03", "incident-02", "incident-01"]),
        ("?host=gpu-07.cluster.local&rank=3", ["incident-01"]),
        ("?gpu=1b:00&resolved=false", ["incident-02"]),
        ("?label=PROD", ["incident-01"]),
        ("?project=a/b", ["incident-03"]),
        ("?since=2026-11-03&until=2026-11", ["incident-02"]),
    ],
)
def test_filters_of_the_list(client: httpx.Client, query: str, expected: list[str]) -> None:
    """Filters choose incidents, the latest first."""
    assert ids(client, query) == expected


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        ("?host=gpu-70", 400, "gpu-07"),
        ("?cause=rank-crush", 400, "rank-crash, unknown"),
        ("?label=nope", 400, "prod"),
        ("?rank=5", 400, "3, 11"),
        ("?rank=minus", 422, ""),
        ("?resolved=perhaps", 422, ""),
        ("?since=yesterday", 422, ""),
        ("?hosts=gpu-07", 422, "host"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/incidents", "/v1/incidents/board"])
def test_an_unknown_filter_is_refused(
    client: httpx.Client, path: str, query: str, status: int, told: str
) -> None:
    """A misspelt name or value is a problem that names what there is, never an empty list."""
    refused = client.get(f"{path}{query}")
    assert (refused.status_code, refused.headers["content-type"]) == (status, PROBLEM)
    assert told in refused.json()["todo"]


@pytest.mark.usefixtures("filled")
def test_pages_lead_on(client: httpx.Client) -> None:
    """Link leads through all incidents, each once; the total stands on every page."""
    seen: list[str] = []
    url = "/v1/incidents?limit=2"
    while url:
        page = client.get(url)
        assert page.json()["total"] == 3
        seen += [item["id"] for item in page.json()["items"]]
        url = page.links.get("next", {}).get("url", "")
    assert seen == ["incident-03", "incident-02", "incident-01"]
    tag = {"if-none-match": client.get("/v1/incidents").headers["etag"]}
    assert client.get("/v1/incidents", headers=tag).status_code == 304


@pytest.mark.usefixtures("filled")
def test_the_board_over_the_wire(client: httpx.Client) -> None:
    """What recurs with what fixed it, offenders, the mean; filters narrow it."""
    board = client.get("/v1/incidents/board").json()
    assert (board["incidents"], board["open"], board["mean_hours_to_resolve"]) == (3, 2, 6.0)
    (group,) = board["recurring"]
    assert group["ids"] == ["incident-02", "incident-01"]
    assert [fix["fix"]["title"] for fix in group["fixes"]] == ["Smaller batch"]
    (offender,) = board["offenders"]
    assert (offender["host"], offender["gpu"], offender["incidents"]) == ("gpu-07", "3 (1b:00)", 2)
    narrow = client.get("/v1/incidents/board?resolved=true").json()
    assert (narrow["incidents"], narrow["recurring"], narrow["offenders"]) == (1, [], [])


def test_without_incidents(client: httpx.Client, service: FakeService) -> None:
    """An empty knowledge base has an empty list, an empty board and no series."""
    assert service.incidents() == ()
    assert ids(client) == []
    assert client.get("/v1/incidents/board").json()["incidents"] == 0
    assert "timeout_kb_incidents{" not in client.get("/metrics").text


@pytest.mark.usefixtures("filled")
def test_incidents_in_the_metrics(client: httpx.Client, filled: FakeService) -> None:
    """A gauge by cause and outcome that follows the store."""

    def counts() -> dict[tuple[str, str], float]:
        families = text_string_to_metric_families(client.get("/metrics").text)
        return {
            (sample.labels["cause"], sample.labels["resolved"]): sample.value
            for family in families
            if family.name == "timeout_kb_incidents"
            for sample in family.samples
        }

    before = {("rank-crash", "true"): 1, ("rank-crash", "false"): 1, ("unknown", "false"): 1}
    assert counts() == before
    filled.store.delete(["incident-03"])
    assert counts() == {key: value for key, value in before.items() if key[0] != "unknown"}
