"""The start page of the system: the status of each application, and links to it."""

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
OTHER_SITE = "http://127.0.0.1:8799"
TEMPLATES = Path(start_page.__file__).parent / "templates"


@pytest.fixture
def served(sqlite_url: str, tmp_path: Path, serve: Serve) -> Server:
    file, own = tmp_path / "status.json", f"sqlite:///{tmp_path / 'records.db'}"
    with Holdfast(own) as records_hf:
        records_hf.start()
    up = partial(ApplicationStatus, state="up", reason="", restarts=0)
    records = up(name="records", title="Records", shows="Documents.", site=OTHER_SITE, page="/documents", database=own)
    tour = up(name="tour", title="Tour", shows="Samples.", site="", page="/", database=sqlite_url)
    status.write(file, [records, tour])
    hf = Holdfast(sqlite_url)
    site = Site(hf, admin_token=TOKEN, templates=TEMPLATES, links={"Applications": "system.start"})
    site.include(start_page.router(site, file, token=TOKEN))
    return serve(hf, app=create_app(site))


def test_the_start_page_links_to_each_application_and_its_runs(served: Server) -> None:
    page = served.client("viewer", headers=PAGE).get("/start").text
    assert 'href="/start/records/documents">Records' in page
    assert 'href="/start/records/holdfast/runs?queue=records"' in page
    assert 'href="/start/tour/runs?queue=tour"' in page


def test_only_an_admin_is_redirected_with_the_token(served: Server) -> None:
    def target(role: str, path: str) -> str:
        answer = served.client(role, headers=PAGE).get(path)  # type: ignore[arg-type]
        assert answer.status_code == 303
        return answer.headers["location"]

    assert target("admin", "/start/records/documents?x=1") == f"{OTHER_SITE}/documents?x=1&token={TOKEN}"
    assert target("operator", "/start/records/documents?x=1") == f"{OTHER_SITE}/documents?x=1"
    assert target("admin", "/start/tour/runs") == "/runs"  # on this site
    assert target("admin", "/start/records//evil.example/").startswith(
        f"{OTHER_SITE}//evil.example/"
    )  # stays on the same host
    assert served.client("admin", headers=PAGE).get("/start/unknown/").status_code == 404
