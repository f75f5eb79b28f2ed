"""Every face filters by the facets of `kb.knowledge.facets`, all of them."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from app.api.factory import create_app
from app.cli.search import command
from kb.knowledge.facets import FACETS
from kb.settings import Settings


def test_the_command_line_has_an_option_a_facet() -> None:
    """All but the language: `--lang` is the answer's there."""
    options = {option.name for option in command.params if isinstance(option, click.Option)}
    assert set(FACETS) - options == set()
    repeated = {
        option.name
        for option in command.params
        if isinstance(option, click.Option) and option.multiple
    }
    assert repeated == set(FACETS) - {"language"}


@pytest.mark.parametrize("path", ["/v1/search", "/v1/entries", "/v1/cases"])
def test_the_api_has_a_parameter_a_facet(path: str) -> None:
    """The description of every address that filters names all of them, each repeatable."""
    document = create_app(None, Settings(home=Path("unused"))).openapi()  # type: ignore[arg-type]
    parameters = {
        one["name"]: one["schema"] for one in document["paths"][path]["get"]["parameters"]
    }
    assert {name for name in FACETS if parameters[name]["type"] == "array"} == set(FACETS)
    assert {"exclude", "since", "until"} <= set(parameters)
