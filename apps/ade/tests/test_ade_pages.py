"""Pages of ade: their texts, the generated types, and a user's path through a real browser.

Run `make types` after a change of the API.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apps.ade.tests.ade_service import Service, held_rules, release
from apps.shared.tests.serving import ROOT, TOKEN
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import LOG_VIOLATIONS, TIMEOUT

ADE = ROOT / "apps" / "ade"
TYPES = ADE / "static" / "ade.d.ts"
DOCUMENT = "import json, sys; from apps.ade.web import site; json.dump(site.document(), sys.stdout)"


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The OpenAPI document of the site, written by a process without a database."""
    folder = tmp_path_factory.mktemp("document")
    environment = os.environ | {"HOLDFAST_URL": f"sqlite:///{folder}/never-opened.db"}
    process = subprocess.run(
        [sys.executable, "-c", DOCUMENT], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert not list(folder.iterdir())
    openapi: dict[str, Any] = json.loads(process.stdout)
    return openapi


@pytest.mark.contract("Q19")
def test_the_types_have_not_drifted_from_what_make_types_writes(tmp_path: Path) -> None:
    environment = os.environ | {"HOLDFAST_URL": f"sqlite:///{tmp_path}/never-opened.db"}
    recipe = subprocess.run(["make", "-n", "types"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert recipe == ".venv/bin/python -m scripts.typescript\n"
    command = [sys.executable, *recipe.split()[1:], str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {"docs/openapi.json", "docs/holdfast.d.ts", "apps/ade/static/ade.d.ts"}
    for path in written:
        assert (ROOT / path).read_text("utf-8") == (tmp_path / path).read_text("utf-8"), f"{path}: run `make types`"


def test_every_route_is_in_the_openapi_document(document: dict[str, Any]) -> None:
    described = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert described >= {
        "POST /workspaces",
        "POST /workspaces/{workspace_id}/documents",
        "POST /workspaces/{workspace_id}/configurations",
        "PUT /configurations/{configuration_id}",
        "POST /configurations/{configuration_id}/package",
        "POST /configurations/{configuration_id}/runs",
        "GET /runs/{run_id}",
        "GET /runs/{run_id}/events",
        "GET /runs/{run_id}/outputs/{name}",
        "POST /runs/{run_id}/cancel",
        "POST /runs/{run_id}/again",
        "POST /builds/{build_id}/cancel",
    }
    statuses = document["components"]["schemas"]["Run"]["properties"]["status"]["enum"]
    assert statuses == ["queued", "running", "succeeded", "failed", "cancelled"]


def test_every_response_and_every_error_has_a_schema(document: dict[str, Any]) -> None:
    operations = [
        (f"{method} {path}", operation)
        for path, methods in document["paths"].items()
        if not path.startswith("/holdfast")
        for method, operation in methods.items()
    ]
    assert len(operations) >= 25
    for route, operation in operations:
        responses = [response for status, response in operation["responses"].items() if status.startswith("2")]
        assert responses, route
        for response in responses:
            assert response["content"], route
            assert all(content.get("schema") for content in response["content"].values()), route
        for status in ("401", "404", "422", "429", "default"):
            name = operation["responses"][status]["$ref"].rpartition("/")[2]
            content = document["components"]["responses"][name]["content"]
            assert all(each["schema"] for each in content.values()), route


@pytest.mark.contract("Q19")
def test_the_script_of_the_editor_matches_the_types(tmp_path: Path) -> None:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    compiler = cache / "holdfast" / "typescript-5.9.3" / "node_modules" / ".bin" / "tsc"
    if not compiler.exists():
        pytest.skip("no TypeScript: it is not installed and can't be installed here")
    (tmp_path / "ade.d.ts").write_text(TYPES.read_text("utf-8"))
    script = (ADE / "static" / "ade_editor.js").read_text("utf-8")
    (tmp_path / "ade_editor.js").write_text(script)
    (tmp_path / "other.js").write_text(script.replace("answer.version", "answer.versions"))
    options = ["--noEmit", "--strict", "--allowJs", "--checkJs", "--lib", "es2022,dom,dom.iterable", "--pretty"]
    options += ["false", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler"]
    command = [str(compiler), *options, "--moduleDetection", "force", "ade_editor.js", "other.js"]
    output = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False).stdout
    [error] = output.splitlines()  # only other.js, which reads a field that no response has
    assert error.startswith("other.js")


@pytest.mark.contract("Q16", "Q19")
def test_no_page_and_no_document_says_retry() -> None:
    files = [
        *(ADE / "templates").glob("*"),
        *(ADE / "static").glob("ade*"),
        *ADE.glob("*.md"),
        *ADE.rglob("endpoints/*.py"),
    ]
    wrong = {str(file) for file in files if file.is_file() and re.search(r"retr(y|ies)", _words(file), re.IGNORECASE)}
    assert wrong == set()
    assert "Run again" in (ADE / "templates" / "ade_run.html").read_text()


def _words(file: Path) -> str:
    """Return a file's text without the name of the standard header `Retry-After`."""
    return re.sub(r"Retry-After|retry_after", "", file.read_text("utf-8"))


@pytest.fixture(scope="module")
def one(browser: Browser, template: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("pages")
    with Service(template.copy(folder), folder / "one") as started:
        yield started


@pytest.fixture
def page(browser: Browser, one: Service) -> Iterator[Page]:
    """A page of a signed-in user; the test fails if the browser logs an error."""
    errors: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(4 * TIMEOUT)
    context.add_init_script(LOG_VIOLATIONS)
    page = context.new_page()
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{one.url}?token={TOKEN}")
    yield page
    context.close()
    assert [one for one in errors if "status of 422" not in one] == []  # a 422 is expected, and shown on the page


@pytest.mark.contract("Q2", "Q19")
def test_a_user_uploads_edits_runs_and_runs_again_in_the_browser(page: Page, one: Service, tmp_path: Path) -> None:
    expect.set_options(timeout=6 * TIMEOUT)
    page.goto(f"{one.url}configurations")
    page.get_by_role("link", name="create a workspace").click()
    page.get_by_role("textbox", name="Name").fill("Office")
    page.get_by_role("button", name="New workspace").click()
    expect(page.get_by_role("heading", name="Office")).to_be_visible()
    page.goto(f"{one.url}configurations")
    page.get_by_role("textbox", name="Name").fill("customers")
    page.get_by_role("button", name="New configuration").click()
    expect(page.locator("h1")).to_contain_text("version 1")
    configuration = page.url.rpartition("/")[2]
    sheet = tmp_path / "May <b>.csv"
    sheet.write_bytes(b"Customer,Sum\nAda,1\n<script>alert(1)</script>,2\n")
    page.goto(f"{one.url}documents")
    page.set_input_files("input[type=file]", sheet)
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("link", name="May <b>.csv")).to_be_visible()

    page.goto(f"{one.url}configurations/{configuration}")
    page.get_by_label("Text of rules.py").fill("rules = [")
    page.get_by_role("button", name="Add file").click()
    page.locator("[data-file] input").last.fill("../outside.py")
    page.get_by_role("button", name="Save as new version").click()
    expect(page.locator("[data-notice]")).to_contain_text("is not a valid file path")
    page.locator("[data-file] input").last.fill("notes.md")
    page.get_by_label("Text of rules.py").fill(held_rules())
    page.get_by_role("button", name="Save as new version").click()
    expect(page.locator("h1")).to_contain_text("version 2")

    page.get_by_role("button", name="Run on this document").click()
    expect(page.locator("h1 .state")).to_have_text("waiting for build")
    page.evaluate("window.notReloaded = true")
    while page.locator("h1 .state").inner_text() == "waiting for build":
        release(one.folder)
        page.wait_for_timeout(200)
    expect(page.locator("h1 .state")).to_have_text("succeeded")
    assert page.evaluate("window.notReloaded")
    expect(page.locator("#sheet-1")).to_contain_text("<script>alert(1)</script>")
    expect(page.locator(".ade-log")).to_contain_text("'Customer' is mapped to name")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download workbook").click()
    assert download.value.suggested_filename == "output.xlsx"
    first = page.url
    page.get_by_role("button", name="Run again").click()
    page.wait_for_url(lambda url: "/runs/" in url and url != first)
    expect(page.locator("h1 .state")).to_have_text("succeeded")
    page.goto(f"{one.url}runs")
    expect(page.locator("tbody tr")).to_have_count(2)
    for path in ("runs", "documents", "configurations", f"configurations/{configuration}", "builds", first):
        page.set_viewport_size({"width": 390, "height": 800})
        page.goto(path if path.startswith("http") else f"{one.url}{path}")
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
