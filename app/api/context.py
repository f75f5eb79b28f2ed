"""What every route works with: the service, the settings, the threads that compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

import anyio
import anyio.to_thread
from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant

from app.api.answer_cache import AnswerCache
from app.api.problems import HttpError
from app.api.requests import accepted_language
from app.server.observability import Metrics
from app.server.processes import return_unused_memory
from kb.retry_after import retry_after_header
from kb.settings import Settings
from kb.text.language import language_choice
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.diagnose.verdict import Verdict
    from kb.service import Service

SHORT_BYTES = 256 * 1024  # texts up to this size are read in turn, larger ones beside
STREAMS = 4  # long uploads at once; they wait for the network most of the time
WRITES = 2  # changes of the knowledge base at once: they have places no upload takes
CHECKS = 2  # of health at once; one may hang on a database that vanished
MODEL_WAITS = (
    64  # requests that wait for the language model at once; beyond, the first answer stays
)
MAX_WAITING = 256  # requests waiting for a thread; at 10 ms each that is seconds, enough

T = TypeVar("T")

Lang = Annotated[
    Language | None,
    Query(description="Language of the answer. Default: Accept-Language, else the input's."),
]

Wait = Annotated[
    int,
    Query(
        ge=0,
        le=120,
        description="Seconds to wait for the language model, where one is set; 0: not at all.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiContext:
    """What the routes of one application share, made once in its factory."""

    service: Service
    settings: Settings
    metrics: Metrics
    compute: anyio.CapacityLimiter
    streams: anyio.CapacityLimiter
    writes: anyio.CapacityLimiter
    model_waits: anyio.CapacityLimiter
    checks: anyio.CapacityLimiter
    answer_cache: AnswerCache

    @classmethod
    def of(cls, service: Service, settings: Settings, metrics: Metrics) -> ApiContext:
        """The context of a server that answers with `service`."""
        return cls(
            service=service,
            settings=settings,
            metrics=metrics,
            compute=anyio.CapacityLimiter(settings.threads),
            streams=anyio.CapacityLimiter(STREAMS),
            writes=anyio.CapacityLimiter(WRITES),
            model_waits=anyio.CapacityLimiter(MODEL_WAITS),
            checks=anyio.CapacityLimiter(CHECKS),
            answer_cache=AnswerCache(metrics),
        )

    async def run(self, work: Callable[[], T], *, long: bool = False, write: bool = False) -> T:
        """Do `work` in a thread: a `long` one beside the short ones, so that they need not wait.

        One that changes the knowledge base (`write`) waits for neither of them.

        Raises:
            HttpError: 503 where too many requests wait already.
        """
        limiter = self.writes if write else self.streams if long else self.compute
        if limiter.statistics().tasks_waiting >= MAX_WAITING:
            raise HttpError(
                503, "busy", "busy", headers=retry_after_header(1), count=str(MAX_WAITING)
            )
        job = partial(_giving_memory_back, work) if long or write else work
        return await anyio.to_thread.run_sync(job, limiter=limiter)

    async def second_reading(self, verdict: Verdict, *, wait_s: float | None = None) -> Verdict:
        """The verdict with the language model's opinion, as it was where none is set."""
        reader = self.service.second_reader
        if reader is None:
            return verdict
        return await self.wait_for_model(partial(reader.read, verdict), wait_s)

    async def wait_for_model(self, ask: Callable[..., T], wait_s: float | None = None) -> T:
        """Do `ask` in a thread of its own: a slow model keeps nobody else from an answer.

        Where too many wait already `ask` is told not to, by its parameter `wait_s`.
        """
        if self.model_waits.available_tokens <= 0:
            wait_s = 0
        job = partial(ask, wait_s=wait_s)
        return await anyio.to_thread.run_sync(job, limiter=self.model_waits)

    def language(self, request: Request, parameter: Language | None) -> Language | None:
        """The language asked for by parameter, body, header or setting; None: the input's own."""
        requested = parameter or getattr(request.state, "lang", None) or accepted_language(request)
        return language_choice(requested, self.settings.lang)


def _giving_memory_back(work: Callable[[], T]) -> T:
    """Do `work`, then give its memory back: in its thread, while others are answered."""
    try:
        return work()
    finally:
        return_unused_memory()


def _query_names(dependant: Dependant) -> set[str]:
    """The names a path and what it depends on read from the address."""
    own = {field.alias for field in dependant.query_params}
    return own.union(*map(_query_names, dependant.dependencies))


async def _known_parameters(request: Request) -> None:
    """Refuse parameters the path does not take: a misspelt filter must not pass for none.

    Raises:
        HttpError: 422.
    """
    taken = _query_names(request.scope["route"].dependant)
    unknown = sorted(set(request.query_params) - taken)
    if unknown:
        raise HttpError(
            422,
            "invalid-parameter",
            "unknown_parameters" if taken else "no_parameters",
            names=", ".join(unknown),
            known=", ".join(sorted(taken)),
        )


known_parameters = Depends(_known_parameters)


def context_of(request: Request) -> ApiContext:
    """What the application that answers `request` works with."""
    return cast("ApiContext", request.app.state.context)
