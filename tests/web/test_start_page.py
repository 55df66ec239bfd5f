"""The start page of the system: how each application stands, and the way to it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from system import start_page, status
from system.status import ApplicationStatus
from tests.web.conftest import TOKEN, Serve, Server

from holdfast import Holdfast
from holdfast.web import Site, create_app

PAGE = {"Accept": "text/html"}
THERE = "http://127.0.0.1:8799"
TEMPLATES = Path(start_page.__file__).parent / "templates"


@pytest.fixture
def served(sqlite_url: str, tmp_path: Path, server: Serve) -> Server:
    file, own = tmp_path / "status.json", f"sqlite:///{tmp_path / 'records.db'}"
    with Holdfast(own) as apart:
        apart.start()
    up = partial(ApplicationStatus, state="up", reason="", restarts=0)
    records = up(name="records", title="Records", shows="Papers.", site=THERE, page="/documents", database=own)
    tour = up(name="tour", title="Tour", shows="All.", site="", page="/", database=sqlite_url)
    status.write(file, [records, tour])
    hf = Holdfast(sqlite_url)
    site = Site(hf, token=TOKEN, templates=TEMPLATES, links={"Start": "system.start"})
    site.include(start_page.router(site, file, token=TOKEN))
    return server(hf, app=create_app(site))


def test_it_leads_to_each_application_and_to_its_runs(served: Server) -> None:
    page = served.client("viewer", headers=PAGE).get("/start").text
    assert 'href="/start/records/documents">Records' in page
    assert 'href="/start/records/holdfast/runs?queue=records"' in page
    assert 'href="/start/tour/runs?queue=tour"' in page


def test_an_admin_comes_in_signed_in_and_no_one_else_is_given_the_token(served: Server) -> None:
    def sent(role: str, path: str) -> str:
        answer = served.client(role, headers=PAGE).get(path)  # type: ignore[arg-type]
        assert answer.status_code == 303
        return answer.headers["location"]

    assert sent("admin", "/start/records/documents?x=1") == f"{THERE}/documents?x=1&token={TOKEN}"
    assert sent("operator", "/start/records/documents?x=1") == f"{THERE}/documents?x=1"
    assert sent("admin", "/start/tour/runs") == "/runs"  # here already
    assert sent("admin", "/start/records//evil.example/").startswith(
        f"{THERE}//evil.example/"
    )  # that host and no other
    assert served.client("admin", headers=PAGE).get("/start/nobody/").status_code == 404
