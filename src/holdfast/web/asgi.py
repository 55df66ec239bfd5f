"""The ASGI application that `holdfast serve` runs."""

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
from holdfast.web.middleware import HostCheck
from holdfast.web.problems import Problem, answer_to
from holdfast.web.site import Site

log = logging.getLogger("holdfast.web")


def create_app(site: Site, *, hosts: Sequence[str] = ()) -> FastAPI:
    """Create an application with the site's own routers, and with the API and the dashboard at / or at `site.at`.

    It accepts requests whose host name is a loopback name of this machine or one of `hosts`.
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
    app.add_middleware(HostCheck, hosts=hosts)
    app.add_exception_handler(HTTPException, partial(no_route, site))
    app.include_router(health.router(site), include_in_schema=False)
    app.include_router(metrics.router(site), include_in_schema=False)
    for router in site.own:
        app.include_router(router)
    if site.own:
        app.include_router(_document(site), include_in_schema=False)
    site.add_to(app.router, prefix=site.at)
    return app


async def _end_when_unsafe(site: Site) -> None:
    """Stop the server when the store has become unsafe to write to, so that a new process can reopen the database."""
    while (unsafe := site.hf.store.dialect.unsafe) is None:
        await asyncio.sleep(1)
    log.error("stopping the server: %s", unsafe)
    os.kill(os.getpid(), signal.SIGTERM)


def _document(site: Site) -> APIRouter:
    router = site.resource()
    document = lru_cache(maxsize=1)(site.document)

    @router.get("/openapi.json")
    def get_document() -> JSONResponse:
        return JSONResponse(document())

    return router


async def no_route(site: Site, request: Request, error: Exception) -> Response:
    """Answer a request for an unknown path or with a wrong method."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    match error.status_code:
        case 404:
            error = Problem("unknown_path", "this path does not exist", status=404, headers=headers)
        case 405:
            detail = f"this path does not support {request.method}"
            error = Problem("wrong_method", detail, status=405, headers=headers)
    answer = answer_to(error)
    assert answer is not None
    return site.problem_page(request, answer) if routes.wants_page(request) else answer
