"""One application on two web frameworks: a request submits a run, and each server process has its own worker."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from flask import Flask
from marks import mark  # type: ignore[import-not-found]

from holdfast import Context, Holdfast

hf = Holdfast(os.environ["HOLDFAST_URL"], poll_interval=0.1, lease=3)


@hf.job(timeout=None)
def noted(ctx: Context) -> int:
    mark("start", ctx)
    time.sleep(0.05)
    mark("end", ctx)
    return ctx.run.claim


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    with hf.worker():
        yield


with_fastapi = FastAPI(lifespan=lifespan)


@with_fastapi.post("/")
async def submit_async() -> PlainTextResponse:
    return PlainTextResponse((await noted.asubmit()).id)


with_flask = Flask(__name__)


@with_flask.post("/")
def submit() -> str:
    return noted.submit().id


# Gunicorn's configuration for Flask: `gunicorn -c python:web_apps`.


def post_worker_init(worker: Any) -> None:
    worker.holdfast = hf.worker()
    worker.holdfast.start()


def worker_exit(server: Any, worker: Any) -> None:
    if hasattr(worker, "holdfast"):
        worker.holdfast.stop()
