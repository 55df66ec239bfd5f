"""The pages: their words, their types, and what a person does in a real browser.

After a change of the API: make types
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
from playwright.sync_api import Browser, Page, expect
from tests.apps.ade.ade_service import Service, held_rules, release
from tests.apps.serving import ROOT, TOKEN
from tests.browser.conftest import PATIENCE, TELL_VIOLATIONS

ADE = ROOT / "apps" / "ade"
TYPES = ADE / "static" / "ade.d.ts"
DOCUMENT = "import json, sys; from apps.ade.web import site; json.dump(site.document(), sys.stdout)"


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the site says of itself, by a process that has no database."""
    folder = tmp_path_factory.mktemp("document")
    environment = os.environ | {"HOLDFAST_URL": f"sqlite:///{folder}/never-opened.db"}
    told = subprocess.run(
        [sys.executable, "-c", DOCUMENT], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert not list(folder.iterdir())
    found: dict[str, Any] = json.loads(told.stdout)
    return found


@pytest.mark.contract("Q19")
def test_the_types_have_not_drifted_from_what_make_types_writes(tmp_path: Path) -> None:
    environment = os.environ | {"HOLDFAST_URL": f"sqlite:///{tmp_path}/never-opened.db"}
    told = subprocess.run(["make", "-n", "types"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert told == ".venv/bin/python -m scripts.typescript\n"
    command = [sys.executable, *told.split()[1:], str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {"docs/openapi.json", "docs/holdfast.d.ts", "apps/ade/static/ade.d.ts"}
    for path in written:
        assert (ROOT / path).read_text("utf-8") == (tmp_path / path).read_text("utf-8"), f"{path}: run `make types`"


def test_every_address_is_described(document: dict[str, Any]) -> None:
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


def test_every_answer_has_a_type_and_every_fault_a_shape(document: dict[str, Any]) -> None:
    asked = [
        (f"{method} {path}", told)
        for path, methods in document["paths"].items()
        if not path.startswith("/holdfast")
        for method, told in methods.items()
    ]
    assert len(asked) >= 25
    for address, told in asked:
        good = [answer for status, answer in told["responses"].items() if status.startswith("2")]
        assert good, address
        for answer in good:
            assert answer["content"], address
            assert all(content.get("schema") for content in answer["content"].values()), address
        for status in ("401", "404", "422", "429", "default"):
            named = told["responses"][status]["$ref"].rpartition("/")[2]
            content = document["components"]["responses"][named]["content"]
            assert all(each["schema"] for each in content.values()), address


@pytest.mark.contract("Q19")
def test_the_editor_s_script_fits_the_types(tmp_path: Path) -> None:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    compiler = cache / "holdfast" / "typescript-5.9.3" / "node_modules" / ".bin" / "tsc"
    if not compiler.exists():
        pytest.skip("no TypeScript: npm is not here or may not install it")
    (tmp_path / "ade.d.ts").write_text(TYPES.read_text("utf-8"))
    script = (ADE / "static" / "ade_editor.js").read_text("utf-8")
    (tmp_path / "ade_editor.js").write_text(script)
    (tmp_path / "other.js").write_text(script.replace("answer.version", "answer.versions"))
    options = ["--noEmit", "--strict", "--allowJs", "--checkJs", "--lib", "es2022,dom,dom.iterable", "--pretty"]
    options += ["false", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler"]
    command = [str(compiler), *options, "--moduleDetection", "force", "ade_editor.js", "other.js"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False).stdout
    [fault] = told.splitlines()  # of the one that asks for what no answer has
    assert fault.startswith("other.js")


@pytest.mark.contract("Q16", "Q19")
def test_no_page_and_no_text_says_retry() -> None:
    said = [
        *(ADE / "templates").glob("*"),
        *(ADE / "static").glob("ade*"),
        *ADE.glob("*.md"),
        *ADE.rglob("endpoints/*.py"),
    ]
    wrong = {str(file) for file in said if file.is_file() and re.search(r"retr(y|ies)", _words(file), re.IGNORECASE)}
    assert wrong == set()
    assert "Run again" in (ADE / "templates" / "ade_run.html").read_text()


def _words(file: Path) -> str:
    """Without the names of a header and of a field that the web has long had."""
    return re.sub(r"Retry-After|retry_after", "", file.read_text("utf-8"))


@pytest.fixture(scope="module")
def one(browser: Browser, template: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("pages")
    with Service(template.copy(folder), folder / "one") as started:
        yield started


@pytest.fixture
def page(browser: Browser, one: Service) -> Iterator[Page]:
    """Someone who is signed in; nothing may make their browser complain."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(4 * PATIENCE)
    context.add_init_script(TELL_VIOLATIONS)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{one.url}?token={TOKEN}")
    yield page
    context.close()
    assert [one for one in complaints if "status of 422" not in one] == []  # the one that a person is told of


@pytest.mark.contract("Q2", "Q19")
def test_a_person_uploads_edits_runs_watches_and_runs_again(page: Page, one: Service, tmp_path: Path) -> None:
    expect.set_options(timeout=6 * PATIENCE)
    page.goto(f"{one.url}configurations")
    page.get_by_role("link", name="make one").click()
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
    page.get_by_role("button", name="Add a file").click()
    page.locator("[data-file] input").last.fill("../outside.py")
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.locator("[data-said]")).to_contain_text("can't name a file")
    page.locator("[data-file] input").last.fill("notes.md")
    page.get_by_label("Text of rules.py").fill(held_rules())
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.locator("h1")).to_contain_text("version 2")

    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("h1 .state")).to_have_text("waiting for build")
    page.evaluate("window.stayed = true")
    while page.locator("h1 .state").inner_text() == "waiting for build":
        release(one.folder)
        page.wait_for_timeout(200)
    expect(page.locator("h1 .state")).to_have_text("succeeded")
    assert page.evaluate("window.stayed")
    expect(page.locator("#sheet-1")).to_contain_text("<script>alert(1)</script>")
    expect(page.locator(".ade-log")).to_contain_text("'Customer' is name")
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
