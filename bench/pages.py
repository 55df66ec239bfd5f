"""Pages: how long the pages of the dashboard and the lists of the API take with a million finished runs."""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Iterator

import httpx
import uvicorn
from rich.console import Console
from rich.table import Table

from bench import history
from holdfast import Holdfast
from holdfast.web import Site, create_app
from holdfast.web.server import Address

TOKEN, TIMES = "a-token-that-only-this-measurement-knows", 5
PATHS = """
/ /overview/series /overview/series?span=24h
/runs /runs?state=queued /runs?state=running /runs?state=failed /runs?state=succeeded /runs?job=job1
/runs?state=failed&job=job1 /runs?error=document+99 /runs?key=k17 /runs?tag=tenant%3Dt5 /runs?arg=document_id%3Ddoc-1
/runs/tabs?job=job1 /runs/tabs?queue=q1 /runs/tabs?key=k17 /runs/tabs?tag=tenant%3Dt5
/runs/tabs?arg=document_id%3Ddoc-1 /runs/tabs?error=document+99
/runs/matching?action=again&state=failed /runs/matching?action=cancel&job=job1
/runs/{ended} /runs/{ended}/log /runs/{ready} /runs/{waiting} /runs/{running}
/queues /workers /keys
/pipelines /pipelines?state=succeeded /pipelines?state=running /pipelines?name=film /pipelines/{pipeline}
/builds /builds?state=ready /builds?state=building /builds?job=index /builds/{build}
/schedules /schedules/nightly-1
/api/runs /api/runs?state=failed /api/runs?job=job1&state=succeeded /api/runs?order=submitted&state=failed
/api/runs/count?queue=q1 /api/runs/counts /api/runs/counts?queue=q1 /api/runs/ids?prefix=0000
/api/runs/{waiting} /api/runs/{waiting}/why /api/runs/{ended}/events /api/events
/api/queues /api/workers /api/jobs /api/keys /api/pipelines /api/pipelines?state=failed /api/pipelines/{pipeline}
/api/builds /api/builds?state=failed /api/schedules /api/schedules/nightly-1/slots /api/audit /api/tokens
/api/statistics/overview /api/statistics/series /api/statistics/failures /api/statistics/jobs
/api/statistics/counters /metrics /readyz
"""


def slowest(url: str) -> float:
    """Return the time of the slowest path in milliseconds, and print the median of each path."""
    with Holdfast(url) as hf:
        history.fill(hf)
        with serving(hf) as client:
            figures = {path: timed(client, path) for path in paths(hf)}
    table = Table("path", "ms", title=url.partition(":")[0])
    for path, figure in figures.items():
        table.add_row(path, f"{figure:.0f}")
    Console(width=120).print(table)
    return max(figures.values())


def paths(hf: Holdfast) -> list[str]:
    ids = {name: f"{first + 1:026}" for name, first in history.FIRSTS.items()}
    pipeline, build = hf.pipelines.list(limit=1)[0], hf.builds.list(limit=1)[0]
    ids |= {"ended": ids["id"], "pipeline": pipeline.id, "build": build.run_id}
    return [path.format_map(ids) for path in PATHS.split()]


def timed(client: httpx.Client, path: str) -> float:
    """Return the median response time of a path in milliseconds, without the first two requests."""
    took = []
    for _ in range(TIMES + 2):
        started = time.perf_counter()
        answer = client.get(path)
        took.append(time.perf_counter() - started)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:500]}"
    return statistics.median(took[2:]) * 1000


@contextlib.contextmanager
def serving(hf: Holdfast) -> Iterator[httpx.Client]:
    """Serve the dashboard on a free loopback port, and yield a client of it."""
    site = Site(hf, admin_token=TOKEN)
    config = uvicorn.Config(create_app(site), log_config=None, access_log=False, timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    with Address(port=0).listen() as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while thread.is_alive() and not server.started:
            time.sleep(0.01)
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with httpx.Client(base_url=base, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
            yield client
        site.streams.close()
        server.should_exit = True
        thread.join(10)
