"""The server keeps the promises of its own OpenAPI document, tried with generated requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from app.api import create_app
from app.api.auth import add_key, keys_path
from kb.bootstrap import open_service
from kb.settings import Settings

if TYPE_CHECKING:
    pass

Serve = Callable[[object, Settings], AbstractContextManager[str]]
BAD_INPUT = "urn:timeout-kb:problem:bad-input"
PATIENCE_S = 60  # with a request, on a busy machine
EXAMPLES = 6  # an operation; each finds a class of mistakes, more find the same again
# The document needs no service: routes are described, not called. Requests go to a real server.
DOCUMENT = create_app(None, Settings(home=Path("unused"))).openapi()  # type: ignore[arg-type]
schema = schemathesis.openapi.from_dict(DOCUMENT)


@pytest.fixture(scope="module")
def guarded(serve: Serve, built_home: Callable[[], Path]) -> Iterator[tuple[str, str]]:
    """Address and key of a real server that wants one: only there the promised 401 can be seen."""
    real_settings = Settings(home=built_home())
    key = add_key(keys_path(real_settings), "tests", "admin", per_minute=1_000_000)
    service = open_service(real_settings)
    with serve(service, real_settings) as address:
        yield address, key
    service.close()


def whole_numbers(value: Any) -> Any:
    """`value` with ``13.0`` written ``13``, as every JSON library writes an integer."""
    if isinstance(value, dict):
        return {name: whole_numbers(part) for name, part in value.items()}
    if isinstance(value, list):
        return [whole_numbers(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@pytest.mark.slow
@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_requests_are_answered_as_documented(
    case: schemathesis.Case, guarded: tuple[str, str]
) -> None:
    """No generated request, valid or not, gets a 5xx, an undocumented status or a wrong body."""
    address, key = guarded
    case.body = whole_numbers(case.body)
    headers = {"Authorization": f"Bearer {key}"}
    response = case.call(base_url=address, headers=headers, timeout=PATIENCE_S)
    excluded = []
    if case.media_type == "multipart/form-data":
        # Parts have no types and no empty lists: what breaks a form's schema may be a good form.
        # test_api.py tries the wrong ones.
        excluded.append(negative_data_rejection)
    if response.status_code == 400 and json.loads(response.content)["type"] == BAD_INPUT:
        # Bytes that are no log, a cause there is not: right in form, refused for what they say.
        excluded.append(positive_data_acceptance)
    case.validate_response(response, headers=headers, excluded_checks=excluded)


def test_document_is_complete(server: str) -> None:
    """Every schema the document refers to is in it, and it is the one the tests above used."""
    text = httpx.get(f"{server}/openapi.json").text
    document = json.loads(text)
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= set(document["components"]["schemas"])
    assert document == json.loads(json.dumps(DOCUMENT))
