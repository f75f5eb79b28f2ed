"""The server keeps the promises of its own OpenAPI document, tried with generated requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    from tests.app.conftest import FakeService

EXAMPLES = 12  # an operation; each finds a class of mistakes, more find the same again


@pytest.fixture(scope="module")
def openapi(server: str) -> object:
    """The document as the server gives it."""
    return schemathesis.openapi.from_url(f"{server}/openapi.json")


schema = schemathesis.pytest.from_fixture("openapi")


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_requests_are_answered_as_documented(case: schemathesis.Case, service: FakeService) -> None:
    """No generated request, valid or not, gets a 5xx, an undocumented status or a wrong body."""
    response = case.call()
    case.validate_response(response)


def test_document_is_valid(server: str) -> None:
    """References of the document resolve: every schema it names is there."""
    document = httpx.get(f"{server}/openapi.json").json()
    text = httpx.get(f"{server}/openapi.json").text
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= set(document["components"]["schemas"])
