"""Paths: links by route name are correct wherever the router is mounted."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from tests.web.conftest import Serve

from holdfast import Holdfast
from holdfast.web import Site
from holdfast.web.paths import Paths


def request_to(app: FastAPI, root_path: str = "") -> Request:
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"x")]}
    return Request(scope | {"app": app, "router": app.router, "root_path": root_path, "query_string": b""})


def test_a_route_name_gives_a_quoted_path_wherever_the_router_is_mounted(sqlite_url: str) -> None:
    with Holdfast(sqlite_url) as hf:
        site, paths = Site(hf, admin_token="x" * 40), Paths()
        plain, mounted = FastAPI(), FastAPI()
        plain.include_router(site.router())
        mounted.include_router(site.router(), prefix="/work/holdfast")
        for _ in range(2):  # the second time from the cache
            assert paths.find(request_to(plain), "holdfast.run", {"run_id": "01"}) == "/runs/01"
            assert paths.find(request_to(mounted), "holdfast.run", {"run_id": "01"}) == "/work/holdfast/runs/01"
            assert paths.find(request_to(plain, "/behind"), "holdfast.queues", {}) == "/behind/queues"
            assert paths.find(request_to(plain), "holdfast.run", {"run_id": "~1~?<#"}) == "/runs/~1~%3F%3C%23"
            assert paths.find(request_to(plain), "holdfast.nothing", {}) is None
            assert paths.find(request_to(plain), "holdfast.run", {}) is None


def test_pages_mounted_under_a_prefix_link_to_each_other(serve: Serve, sqlite_url: str) -> None:
    with Holdfast(sqlite_url) as hf:
        run = hf.job(name="work")(lambda: None).submit()
        app = FastAPI()
        app.include_router(hf.router(admin_token="a-token-that-only-these-tests-know"), prefix="/work")
        client = serve(hf, app=app).client("admin", headers={"Accept": "text/html"})
        for path in (
            "/work/runs",
            "/work/queues",
            "/work/workers",
            "/work/schedules",
            "/work/builds",
            "/work/pipelines",
        ):
            page = client.get(path)
            assert page.status_code == 200, page.text
            assert 'href="/runs' not in page.text
            assert 'action="/' not in page.text.replace('action="/work/', "")
        assert f'href="/work/runs/{run.id}"' in client.get("/work/runs").text
