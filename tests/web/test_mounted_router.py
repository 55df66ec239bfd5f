"""The router in the user's own FastAPI application, under a prefix and with a worker."""
# No postponed annotations: FastAPI could not resolve those that name local variables.

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import httpx
import pytest
from fastapi import Depends, FastAPI, Request, Response
from tests.web.conftest import TOKEN, Serve
from tests.web.event_stream import STREAM, read_events

from holdfast import Holdfast, InvalidSetting
from holdfast.values.tokens import Role
from holdfast.web import Site, Who, create_app

PAGE = {"Accept": "text/html"}


def test_the_router_works_under_a_prefix_next_to_the_pages_of_the_application(sqlite_url: str, serve: Serve) -> None:
    with Holdfast(sqlite_url, poll_interval=0.05) as hf:

        @hf.job(name="greet")
        def greet(name: str) -> str:
            return f"hello {name}"

        app = FastAPI(lifespan=hf.lifespan)
        app.include_router(hf.router(admin_token=TOKEN), prefix="/ops/work")

        @app.get("/")
        def mine() -> str:
            return "mine"

        served = serve(hf, app=app)
        client = served.client(headers=PAGE)
        own = client.get("/")
        assert own.json() == "mine"
        assert "content-security-policy" not in own.headers  # Holdfast adds no headers to pages of the application
        first = client.get("/ops/work/")
        assert (first.status_code, first.headers["location"]) == (303, "/ops/work/sign-in?next=%2Fops%2Fwork%2F")
        assert "content-security-policy" in first.headers
        page = client.get("/ops/work/", params={"token": TOKEN})
        assert page.headers["location"] == "/ops/work/"
        page = client.get("/ops/work/")
        assert page.status_code == 200
        assert 'href="/ops/work/static/' in page.text
        assert 'href="/static/' not in page.text
        api = served.client("admin")
        made = api.post("/ops/work/api/runs", json={"job": "greet", "args": {"name": "Ada"}})
        assert made.status_code == 201, made.text
        with api.stream("GET", f"/ops/work/api/runs/{made.json()['id']}/events", headers=STREAM) as answer:
            kinds = [event.json.get("kind") for event in read_events(answer.iter_lines())]
        # The worker that `hf.lifespan` started has executed the run.
        assert [kind for kind in kinds if kind != "OPERATOR_ACTION"] == [
            "RUN_QUEUED",
            "RUN_STARTED",
            "RUN_SUCCEEDED",
            None,
        ]


def test_the_application_can_provide_the_user(sqlite_url: str, serve: Serve) -> None:
    people: dict[str, Role] = {"ada": "operator", "bob": "viewer"}

    def access(request: Request) -> Who | None:
        name = request.cookies.get("user")
        return Who(name, people[name]) if name in people else None

    with Holdfast(sqlite_url) as hf:

        @hf.job(name="greet")
        def greet() -> None: ...

        app = FastAPI()
        app.include_router(hf.router(access=access, sign_in="/login"), prefix="/hf")
        served = serve(hf, app=app)
        assert served.client(headers=PAGE).get("/hf/").headers["location"] == "/login"
        assert served.client().get("/hf/api/jobs").status_code == 401
        assert served.client(headers=PAGE).get("/hf/sign-in").status_code == 404
        bob, ada = (served.client(cookies={"user": name}) for name in ("bob", "ada"))
        assert bob.get("/hf/api/jobs").status_code == 200
        own = {"Origin": served.url}
        run = {"job": "greet", "args": {}}
        assert bob.post("/hf/api/runs", json=run, headers=own).json()["code"] == "not_allowed"
        assert ada.post("/hf/api/runs", json=run).json()["code"] == "cross_site_request"
        evil = {"Origin": "https://evil.example"}
        assert ada.post("/hf/api/runs", json=run, headers=evil).json()["code"] == "cross_site_request"
        assert ada.post("/hf/api/runs", json=run, headers=own).status_code == 201
        # The application decides who has access, so the admin token is not accepted.
        assert served.client(headers={"Authorization": f"Bearer {TOKEN}"}).get("/hf/api/jobs").status_code == 401


def test_an_application_can_use_roles_layout_and_limits_for_its_own_pages(
    sqlite_url: str, serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "mine.html").write_text(
        '{% extends "frame.html" %}{% block title %}Mine{% endblock %}{% block main %}<h1>{{ text }}</h1>{% endblock %}'
    )
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "mine.css").write_text("h1 { color: red }")
    with Holdfast(sqlite_url) as hf:
        site = Site(
            hf, title="Records", admin_token=TOKEN, templates=tmp_path / "templates", static=tmp_path / "static"
        )
        own = site.resource("/mine")

        @own.get("")
        async def mine(request: Request, who: Annotated[Who, Depends(site.operator)]) -> Response:
            return site.render(request, who, "mine.html", text="<script>alert(1)</script>")

        @own.get("/forgotten")
        def forgotten() -> str:
            return "this endpoint requires no role"

        app = create_app(site)
        app.include_router(own)
        served = serve(hf, app=app)
        assert served.client().get("/mine/forgotten").status_code == 401
        assert served.client("viewer").get("/mine").status_code == 403
        page = served.client("operator", headers=PAGE).get("/mine")
        assert "<title>Mine · Records</title>" in page.text
        assert "&lt;script&gt;" in page.text
        assert "<script>alert" not in page.text
        assert served.client().get(f"/static/{site.statics.version}/mine.css").status_code == 200


def test_application_pages_at_the_root_come_before_the_dashboard(sqlite_url: str, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "mine.html").write_text('{% extends "frame.html" %}{% block main %}<h1>Mine</h1>{% endblock %}')
    with Holdfast(sqlite_url) as hf:
        site = Site(
            hf, title="Records", admin_token=TOKEN, templates=tmp_path, links={"Papers": "papers"}, at="/holdfast"
        )
        papers = site.resource()

        @papers.get("/", name="papers", include_in_schema=False)
        def all_papers(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
            return site.render(request, who, "mine.html")

        @papers.get("/papers/{paper_id}")
        def get_paper(paper_id: int) -> dict[str, int]:
            """One paper."""
            return {"id": paper_id}

        site.include(papers)
        served = serve(hf, app=create_app(site))
        client = served.client("viewer", headers=PAGE)
        own, ours = client.get("/").text, client.get("/holdfast/").text
        assert "<h1>Mine</h1>" in own
        assert ('href="/">Papers' in own, 'href="/" aria-current="page">Papers' in own) == (False, True)
        assert 'href="/holdfast/">Engine' in own
        assert 'href="/holdfast/queues"' not in own
        assert 'href="/">Records' in ours
        assert 'href="/holdfast/queues"' in ours
        assert served.client("viewer").get("/holdfast/api/runs").json()["items"] == []
        assert served.client().get("/healthz").status_code == 200
        # Sign-in without `next` redirects to the first page of the application.
        assert served.client(headers=PAGE).get(f"/holdfast/sign-in?token={TOKEN}").headers["location"] == "/"
        assert served.client(headers=PAGE).get("/").headers["location"] == "/holdfast/sign-in?next=%2F"

        assert served.client().get("/openapi.json").status_code == 401
        document = served.client("viewer").get("/openapi.json").json()
        assert document == site.document()
        assert list(document["paths"]) == ["/papers/{paper_id}"]
        operation = document["paths"]["/papers/{paper_id}"]["get"]
        assert operation["operationId"] == "get_paper"
        assert operation["responses"]["404"] == {"$ref": "#/components/responses/NotFound"}
        with pytest.raises(ValueError, match="not a valid path"):
            Site(hf, at="holdfast/")


def test_start_up_hooks_of_a_site_run_before_the_first_request(sqlite_url: str, serve: Serve) -> None:
    with Holdfast(sqlite_url) as hf:
        site = Site(hf, admin_token=TOKEN, at="/holdfast")
        done: list[str] = []
        own = site.resource()

        @own.get("/done")
        def all_done() -> list[str]:
            return done

        @site.on_start
        def make_tables() -> None:
            done.append("tables")

        @site.on_start
        def load() -> None:
            done.append("samples")

        site.include(own)
        served = serve(hf, app=create_app(site))
        assert [served.client("viewer").get("/done").json() for _ in range(2)] == [["tables", "samples"]] * 2


def test_without_the_web_extra_the_error_says_what_to_install(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "holdfast.web.site", None)
    with Holdfast(sqlite_url) as hf, pytest.raises(InvalidSetting, match=r"pip install 'holdfast\[web\]'"):
        hf.router()


APP = """
import sys
import uvicorn
from fastapi import FastAPI
from holdfast import Holdfast

hf = Holdfast(sys.argv[1], admin_token="the-fixed-admin-token")
app = FastAPI()
app.include_router(hf.router())
config = uvicorn.Config(app, port=0, log_level="info")
uvicorn.Server(config).run()
"""


def test_an_open_stream_does_not_prevent_the_server_of_the_application_from_stopping(
    sqlite_url: str, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(APP)
    process = subprocess.Popen(
        [sys.executable, "app.py", sqlite_url],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stderr is not None
        url = next(found[0] for line in process.stderr if (found := re.findall(r"http://[0-9.:]+", line)))
        with httpx.stream("GET", f"{url}/live", headers={"Authorization": "Bearer the-fixed-admin-token"}) as answer:
            lines = answer.iter_lines()
            next(lines)
            process.send_signal(signal.SIGTERM)
            for _ in lines:
                pass
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
