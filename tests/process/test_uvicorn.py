"""A FastAPI application on uvicorn stops even if requests have abandoned their waits for results."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tests.waiting import wait_for

from holdfast import Holdfast

APP = """
import asyncio
from fastapi import FastAPI
from holdfast import Holdfast

hf = Holdfast(poll_interval=0.1)
app = FastAPI(lifespan=hf.lifespan)


@hf.job(name="elsewhere", queue="unserved")
def elsewhere() -> None: ...


@hf.job(name="double")
def double(number: int) -> int:
    return 2 * number


@app.post("/double/{number}")
async def post_double(number: int) -> int:
    run = await double.asubmit(number)
    return await run.aresult(timeout=60)


@app.post("/give-up")
async def give_up() -> str:
    run = await elsewhere.asubmit()
    try:
        await asyncio.wait_for(run.aresult(), 0.05)
    except TimeoutError:
        return run.id


@app.get("/thread")
async def thread() -> str:
    return await asyncio.to_thread(lambda: "free")
"""
GIVEN_UP = 40  # more than asyncio's default executor has threads


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[str], tuple[subprocess.Popen[bytes], str]]]:
    """Serve the application on a database; return the process and the URL of the server."""
    (tmp_path / "app.py").write_text(APP)
    started: list[subprocess.Popen[bytes]] = []

    def serve(url: str) -> tuple[subprocess.Popen[bytes], str]:
        log = tmp_path / "uvicorn.log"
        with log.open("wb") as written:
            process = subprocess.Popen(
                [sys.executable, "-m", "uvicorn", "app:app", "--port", "0"],
                cwd=tmp_path,
                env={**os.environ, "HOLDFAST_URL": url},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=written,
            )
        started.append(process)
        found = wait_for(lambda: re.search(r"running on (http://\S+)", log.read_text()), what="uvicorn serves")
        return process, found[1]

    yield serve
    for process in started:
        process.kill()
        process.wait(timeout=60)


@pytest.mark.contract("S5")
@pytest.mark.parametrize("kind", ["sqlite_url", "postgres_url"])
def test_abandoned_waits_do_not_prevent_uvicorn_from_stopping(
    serve: Callable[[str], tuple[subprocess.Popen[bytes], str]], request: pytest.FixtureRequest, kind: str
) -> None:
    url = request.getfixturevalue(kind)
    process, address = serve(url)
    with httpx.Client(base_url=address, timeout=60) as client:
        given_up = [client.post("/give-up").json() for _ in range(GIVEN_UP)]
        assert client.get("/thread").json() == "free"
        assert client.post("/double/4").json() == 8
    process.send_signal(signal.SIGTERM)
    # After its lifespan has ended, uvicorn raises the signal again.
    assert process.wait(timeout=30) in (0, -signal.SIGTERM)
    with Holdfast(url) as hf:
        assert {hf.snapshot(run_id).state for run_id in given_up} == {"queued"}
        assert hf.workers.list() == []
