"""``/healthz``, ``/readyz`` and ``/metrics``: for load balancers and Prometheus."""

from __future__ import annotations

import anyio
import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.api.auth import read_access
from app.api.context import context_of
from app.api.responses import json_response
from app.api.schemas import Alive
from kb.components import HealthReport

CHECK_S = 4.0  # less than what a probe waits (5 s in deploy/)

router = APIRouter(tags=["operation"])


@router.get("/", include_in_schema=False)
async def front_door() -> RedirectResponse:
    """Who opens the address in a browser gets the documentation."""
    return RedirectResponse("docs")


@router.get("/healthz", summary="Is the process alive?", response_model=Alive)
async def healthz() -> Response:
    """Always answers while the process lives; restart it when it does not."""
    return json_response(Alive())


@router.get(
    "/readyz",
    summary="Can it answer?",
    response_model=HealthReport,
    responses={503: {"model": HealthReport, "description": "Not ready; `problems` says why."}},
)
async def readyz(request: Request) -> Response:
    """200 when diagnoses can be given, 503 with the problems otherwise, within seconds.

    The check runs in a thread: a database that vanished without refusing keeps nobody else waiting.
    """
    context = context_of(request)
    try:
        with anyio.fail_after(CHECK_S):
            report = await anyio.to_thread.run_sync(
                context.service.health, limiter=context.checks, abandon_on_cancel=True
            )
    except TimeoutError:
        problems = (f"the check took longer than {CHECK_S:g} s",)
        report = HealthReport(ready=False, problems=problems, entries=0, cases=0)
    except Exception as error:  # noqa: BLE001 - a health check reports whatever is wrong
        structlog.get_logger("app.api").error("health check failed", exc_info=error)
        context.metrics.failures.labels(type(error).__name__).inc()
        problems = (f"unexpected {type(error).__name__}",)
        report = HealthReport(ready=False, problems=problems, entries=0, cases=0)
    return json_response(report, status=200 if report.ready else 503)


@router.get(
    "/metrics",
    summary="Prometheus metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    dependencies=[read_access],
)
async def metrics(request: Request) -> Response:
    """Numbers of this process in Prometheus' text format; with a key where there are keys."""
    context = context_of(request)
    numbers = context.metrics
    text = await context.run(numbers.text, long=True)  # counting incidents may read the store
    return Response(text, media_type=numbers.content_type)
