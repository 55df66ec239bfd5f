"""The whole application that `holdfast serve` runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Sequence
from functools import lru_cache, partial

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from holdfast import __version__
from holdfast.web import metrics, routes
from holdfast.web.api import health
from holdfast.web.middleware import Doorman
from holdfast.web.problems import Problem, answer_to
from holdfast.web.site import Site

log = logging.getLogger("holdfast.web")


def create_app(site: Site, *, hosts: Sequence[str] = ()) -> FastAPI:
    """What the site includes, then API and dashboard, at / unless the site says where.

    It answers to the names of this machine's loopback, and to these hosts.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        site.hf.store.warn()
        for function in site.starts:
            await run_in_threadpool(function)
        ending = asyncio.create_task(_end_when_unsafe(site))
        yield
        ending.cancel()
        site.streams.close()

    app = FastAPI(
        title=site.title, version=__version__, docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan
    )
    app.add_middleware(Doorman, hosts=hosts)
    app.add_exception_handler(HTTPException, partial(not_ours, site))
    app.include_router(health.router(site), include_in_schema=False)
    app.include_router(metrics.router(site), include_in_schema=False)
    for router in site.own:
        app.include_router(router)
    if site.own:
        app.include_router(_document(site), include_in_schema=False)
    app.include_router(site.router(), prefix=site.at)
    return app


async def _end_when_unsafe(site: Site) -> None:
    """End this server when it may write no more: a new process opens the database anew."""
    while (unsafe := site.hf.store.dialect.unsafe) is None:
        await asyncio.sleep(1)
    log.error("the server stops: %s", unsafe)
    os.kill(os.getpid(), signal.SIGTERM)


def _document(site: Site) -> APIRouter:
    described = site.resource()
    made = lru_cache(maxsize=1)(site.document)

    @described.get("/openapi.json")
    def get_document() -> JSONResponse:
        return JSONResponse(made())

    return described


async def not_ours(site: Site, request: Request, error: Exception) -> Response:
    """The answer where there is no such path, or not for this method."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    match error.status_code:
        case 404:
            error = Problem("unknown_path", "there is nothing here", status=404, headers=headers)
        case 405:
            error = Problem("wrong_method", f"not by {request.method}", status=405, headers=headers)
    answer = answer_to(error)
    assert answer is not None
    return site.problem_page(request, answer) if routes.wants_page(request) else answer
