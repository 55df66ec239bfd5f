"""Jobs that only the application may start: the API and the pages refuse them and link to the application."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.listing import runs_of
from tests.web.conftest import Server, serving
from tests.web.parsed_page import parse

from holdfast import Holdfast, OnlyFromCode, RunFilter
from holdfast.client import Client
from holdfast.testing import Manual


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, dict[str, str]]]:
    """A server with a run, a pipeline and a build that only the application starts, and a run that anyone may start."""
    with Holdfast(f"sqlite:///{tmp_path_factory.mktemp('only') / 'work.db'}") as hf, serving(hf) as server:
        process = hf.job(name="process", only_from_code=True, start_at="/documents")(lambda document_id: document_id)
        film = hf.pipeline("film", only_from_code=True, start_at="https://films.example/videos")
        film.stage(name="cut")(lambda name: name)
        build = hf.build(name="environment", only_from_code=True)(_environment)
        runs = {
            "run": process.submit(document_id="doc-1").id,
            "pipeline": film.submit(name="one").id,
            "build": build.submit(fingerprint="f1").id,
            "open": hf.job(name="open")(lambda: None).submit().id,
        }
        Manual(hf).run_all()
        yield server, runs


def _environment(fingerprint: str) -> str:
    return fingerprint


ASKED: list[tuple[str, dict[str, Any] | None, str | None]] = [
    ("/api/runs", {"job": "process", "args": {"document_id": "doc-1"}}, "/documents"),
    ("/api/runs", {"job": "film", "args": {"name": "one"}}, "https://films.example/videos"),
    ("/api/runs", {"job": "environment", "args": {"fingerprint": "f1"}}, None),
    ("/api/runs/again", {"job": "process"}, "/documents"),
    ("/api/runs/RUN/again", None, "/documents"),
    ("/api/runs/PIPELINE/again", None, "https://films.example/videos"),
    ("/api/pipelines/PIPELINE/rerun", {"from_stage": "cut"}, "https://films.example/videos"),
    ("/api/runs/BUILD/again", None, None),
    ("/api/builds/BUILD/rebuild", None, None),
]


def _at(path: str, runs: dict[str, str]) -> str:
    for name, run_id in runs.items():
        path = path.replace(name.upper(), run_id)
    return path


@pytest.mark.contract("S4")
@pytest.mark.parametrize(("path", "body", "start_at"), ASKED)
def test_the_api_refuses_code_only_jobs_with_one_code_and_the_address(
    site: tuple[Server, dict[str, str]], path: str, body: dict[str, Any] | None, start_at: str | None
) -> None:
    server, runs = site
    before = len(runs_of(server.hf))
    answer = server.client("operator").post(_at(path, runs), json=body)
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["start_at"]) == (422, "only_from_code", start_at)
    assert "only the application itself can start runs of" in problem["detail"]
    assert len(runs_of(server.hf)) == before


@pytest.mark.contract("S4")
def test_the_client_raises_the_same_error_as_holdfast(site: tuple[Server, dict[str, str]]) -> None:
    server, runs = site
    with Client(server.url, token=server.token_of("operator")) as client:
        for ask in (
            lambda: client.submit("process", document_id="doc-1"),
            lambda: client.again(runs["run"]),
            lambda: client.bulk.again(RunFilter(job="process")),
        ):
            with pytest.raises(OnlyFromCode) as refused:
                ask()
            assert refused.value.start_at == "/documents"


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/runs/RUN/again", {}),
        ("/runs/PIPELINE/again", {}),
        ("/runs/matching", {"action": "again", "filter": '{"job": "process"}'}),
        ("/pipelines/PIPELINE/rerun", {}),
        ("/pipelines/PIPELINE/rerun", {"from_stage": "cut"}),
        ("/builds/BUILD/rebuild", {}),
    ],
)
def test_no_form_on_a_page_starts_a_code_only_job(
    site: tuple[Server, dict[str, str]], path: str, form: dict[str, str]
) -> None:
    server, runs = site
    before = len(runs_of(server.hf))
    browser = server.client("operator", cookie=True, headers={"Accept": "text/html"})
    page = browser.post(_at(path, runs), data=form, follow_redirects=True)
    assert "only the application itself can start runs of" in parse(page.text).text
    assert len(runs_of(server.hf)) == before


@pytest.mark.contract("S4")
def test_pages_link_to_the_application_instead_of_offering_refused_actions(site: tuple[Server, dict[str, str]]) -> None:
    server, runs = site
    browser = server.client("operator", cookie=True, headers={"Accept": "text/html"})
    run, found = _page(browser, f"/runs/{runs['run']}"), _page(browser, "/runs?job=process")
    pipeline, build = _page(browser, f"/pipelines/{runs['pipeline']}"), _page(browser, f"/builds/{runs['build']}")
    for page, where in ((run, "/documents"), (found, "/documents"), (pipeline, "https://films.example/videos")):
        assert where in page.links
        assert _asks(page).isdisjoint({"again-dialog", "copy-dialog", "rerun", "again"})
    assert "Only the application can start these runs." in build.text
    assert "rebuild" not in _asks(build)
    assert _asks(_page(browser, f"/runs/{runs['open']}")) >= {"again-dialog", "copy-dialog"}
    refused = browser.get("/runs/matching?action=again&job=process")
    assert (refused.status_code, "/documents" in parse(refused.text).links) == (422, True)


def _page(browser: httpx.Client, path: str) -> Any:
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    return parse(answer.text)


def _asks(page: Any) -> set[str]:
    """The dialogs and actions that a page offers."""
    return {button.get("data-dialog") or button.get("value", "") for button in page.all("button")} | {
        dialog.get("id", "") for dialog in page.all("dialog")
    }
