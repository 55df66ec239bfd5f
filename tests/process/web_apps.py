"""One application on two web frameworks: a request submits a run, and each server process has a worker of its own."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from flask import Flask

from holdfast import Context, Holdfast

hf = Holdfast(os.environ["HOLDFAST_URL"], tick=0.1, lease=3)
MARKS = Path(os.environ["TEST_MARKS"])


@hf.job(timeout=None)
def noted(ctx: Context) -> int:
    _mark("start", ctx)
    time.sleep(0.05)
    _mark("end", ctx)
    return ctx.attempt


def _mark(what: str, ctx: Context) -> None:
    line = f"{time.clock_gettime(time.CLOCK_BOOTTIME)} {what} {ctx.run.id} {ctx.attempt} {os.getpid()}\n"
    descriptor = os.open(MARKS / "marks.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode())
    os.close(descriptor)


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
