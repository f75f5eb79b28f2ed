"""Builds the ASGI application out of a service and settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import metadata
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from app.api import chat as talking
from app.api import diagnose, entries, health, kept, lookup
from app.api.access import Guard, is_loopback, keys_path, read_access
from app.api.answers import Answers
from app.api.middleware import Observe
from app.api.parts import STREAMS, Parts, known_parameters
from app.api.problems import PROBLEM_JSON, add_problem_handlers
from app.heap import give_back
from app.observe import new_metrics
from app.schemas import (
    BatchRequest,
    ChatRequest,
    DiagnoseRequest,
    FeedbackRequest,
    LintRequest,
    NewEntry,
    Problem,
    ResolveRequest,
    SearchRequest,
)
from kb.settings import Settings

if TYPE_CHECKING:
    from kb.chat.chat import Chat
    from kb.service import Service

BODIES = (
    DiagnoseRequest,
    BatchRequest,
    SearchRequest,
    LintRequest,
    NewEntry,
    ResolveRequest,
    FeedbackRequest,
    ChatRequest,
)
# What any route may answer, for the OpenAPI document; the handlers see to the form.
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "description": "The request cannot be answered; `todo` says what to do.",
        "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    },
    "5XX": {
        "description": "The server failed.",
        "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    },
}
WARM_UP = "Watchdog caught collective operation timeout"  # takes the path a log takes
ABOUT = """Paste a distributed-training timeout log (NCCL, HCCL, RCCL, Gloo, TCPStore, inference
servers; Chinese or English) and get what happened, the ranked root causes with evidence, fixes,
similar cases and what to collect next. Try:

    curl http://127.0.0.1:8000/v1/diagnose -H 'Accept: text/plain' -T job.log
"""


def create_app(
    service: Service, settings: Settings, *, chat: Chat | None = None, workers: int = 1
) -> FastAPI:
    """The application that answers with `service`. Whoever opened the service closes it.

    `chat` is by default opened over the service when somebody talks to it. It is one of so many
    `workers` on the same address.

    Raises:
        SettingsError: what the settings say of the language model is wrong.
    """
    metrics = new_metrics()
    app: FastAPI = FastAPIOffline(
        title="timeout-kb",
        version=_version(),
        description=ABOUT,
        docs_url="/docs",
        redoc_url=None,
        responses=PROBLEMS,
        separate_input_output_schemas=False,
        lifespan=_warmed_up,
    )
    app.state.parts = Parts(
        service=service,
        settings=settings,
        metrics=metrics,
        compute=anyio.CapacityLimiter(settings.threads),
        streams=anyio.CapacityLimiter(STREAMS),
        answers=Answers(metrics),
    )
    app.state.room = _room(service, settings, chat, app.state.parts.compute)
    app.state.guard = Guard(
        keys_path(settings), shut=not is_loopback(settings.host), workers=workers
    )
    app.state.slack = None
    if settings.slack_mode == "http":
        from app.slack.mounted import mount

        app.state.slack = mount(app)
    for router in (diagnose.router, kept.router, lookup.router, talking.router):
        app.include_router(router, dependencies=[read_access, known_parameters])
    app.include_router(entries.router)  # each route asks for its role first
    app.include_router(health.router)
    add_problem_handlers(app)
    app.add_middleware(Observe, metrics=metrics)
    _complete_openapi(app)
    return app


def _room(
    service: Service, settings: Settings, chat: Chat | None, compute: anyio.CapacityLimiter
) -> talking.Room:
    """Where chats are held: among the short requests, unless they wait for a language model."""
    from app.composition import open_chat

    if settings.llm_base_url:
        from app.llm import check_llm_settings

        check_llm_settings(settings)
    waits = bool(settings.llm_base_url) or chat is not None
    limiter = anyio.CapacityLimiter(talking.TALKS) if waits else compute
    return talking.Room(lambda: chat or open_chat(service), limiter)


@asynccontextmanager
async def _warmed_up(app: FastAPI) -> AsyncIterator[None]:
    """Diagnose once before the first request, in the thread that will answer it.

    The first diagnosis of a thread compiles patterns and loads tables, the first addition imports
    what reads it: the caller need not wait.
    """
    from app.contribute import get_ready

    parts: Parts = app.state.parts
    await parts.run(lambda: parts.service.diagnose_text(WARM_UP))
    await parts.run(lambda: get_ready(parts.service))
    give_back()
    yield
    if app.state.slack is not None:
        await app.state.slack.close()


def _version() -> str:
    try:
        return metadata.version("timeout-kb")
    except metadata.PackageNotFoundError:  # a checkout that is not installed
        return "0"


def _complete_openapi(app: FastAPI) -> None:
    """Add the schemas of bodies and problems, which routes check without the framework."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate()
            _, schemas = msgspec.json.schema_components(
                (*BODIES, Problem), ref_template="#/components/schemas/{name}"
            )
            known = document.setdefault("components", {}).setdefault("schemas", {})
            for name, schema in schemas.items():
                known.setdefault(name, schema)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
