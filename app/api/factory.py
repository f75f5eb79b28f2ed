"""Builds the ASGI application out of a service and settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from app.api.auth import Guard, keys_place, read_access
from app.api.context import ApiContext, known_parameters
from app.api.middleware import Observe, refuse_foreign
from app.api.problems import PROBLEM_JSON, add_problem_handlers
from app.api.routes import chat as chat_routes
from app.api.routes import diagnose, entries, health, incidents, lookup, saved
from app.api.schemas import (
    BatchRequest,
    ChatRequest,
    DiagnoseRequest,
    EditRequest,
    FeedbackRequest,
    LintRequest,
    MergeRequest,
    NewEntry,
    Problem,
    ResolveRequest,
    SearchRequest,
)
from app.server.address import is_loopback
from app.server.browser_guard import BrowserGuard
from app.server.observability import IncidentCounts, KeptSizes, ModelUsage, new_metrics
from app.server.processes import return_unused_memory
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
    EditRequest,
    MergeRequest,
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
# Swagger's page: its script and style come from here, its one inline script is known.
DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
SIGNED_PATHS = frozenset({"/slack/events"})  # come by the public address of a tunnel, signed
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
    """
    from kb.chat.chat import Chat

    metrics = new_metrics()
    metrics.registry.register(ModelUsage(service))
    metrics.registry.register(IncidentCounts(service))
    metrics.registry.register(KeptSizes(service))
    app: FastAPI = FastAPIOffline(
        title="timeout-kb",
        version=program_version(),
        description=ABOUT,
        docs_url="/docs",
        redoc_url=None,
        responses=PROBLEMS,
        separate_input_output_schemas=False,
        lifespan=_warmed_up,
    )
    app.state.context = ApiContext.of(service, settings, metrics)
    app.state.open_chat = cache(lambda: chat or Chat(service))  # opening reads phrases
    app.state.guard = Guard(
        keys_place(settings, service.store if settings.shared_store else None),
        shut=not is_loopback(settings.host),
        workers=workers,
    )
    app.state.guard.follow()
    app.state.slack = None
    if settings.slack_mode == "http":
        from app.slack.run import MountedBot

        app.state.slack = MountedBot(app)
    reading = (diagnose, saved, lookup, incidents, chat_routes)
    for router in (module.router for module in reading):
        app.include_router(router, dependencies=[read_access, known_parameters])
    app.include_router(entries.router)  # each route asks for its role first
    app.include_router(health.router)
    add_problem_handlers(app)
    app.add_middleware(
        BrowserGuard,
        guards=app.state.guard.open_to_all,
        refuse=refuse_foreign,
        public_url=settings.public_url,
        policy=DOCS_POLICY,
        signed_paths=SIGNED_PATHS,
    )
    app.add_middleware(Observe, metrics=metrics)
    _complete_openapi(app)
    return app


@asynccontextmanager
async def _warmed_up(app: FastAPI) -> AsyncIterator[None]:
    """Diagnose once before the first request, in the thread that will answer it.

    The first diagnosis of a thread compiles patterns and loads tables, the first addition imports
    what reads it: the caller need not wait.
    """
    from app.inputs.contributions import preload

    context: ApiContext = app.state.context
    await context.run(lambda: context.service.diagnose_text(WARM_UP))
    await context.run(lambda: preload(context.service))
    return_unused_memory()
    yield
    if app.state.slack is not None:
        await app.state.slack.close()


def program_version() -> str:
    """The version of the installed package, ``0`` in a checkout that is not installed."""
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
