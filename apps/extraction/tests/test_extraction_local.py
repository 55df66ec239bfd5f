"""Extraction without a cloud: upload, read, search and delete documents, over HTTP and in a browser."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from apps.extraction import samples
from apps.extraction.tests.conftest import Extraction, pdf, running
from apps.extraction.tests.test_extraction_reading import encrypted
from apps.shared.tests.drop_file import DROP
from apps.shared.tests.serving import TOKEN
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import LOG_VIOLATIONS
from tests.browser.test_browser_pages import _faults as faults
from tests.process.support import wait_for

SAMPLES = Path(samples.__file__).parent
TIMEOUT = 60_000


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extraction]:
    settings = {"EXTRACTION_MAX_BYTES": "400000", "EXTRACTION_MAX_PAGES": "30", "EXTRACTION_RETRY_DELAY": "0.1"}
    with running(tmp_path_factory.mktemp("local"), inside=True, settings=settings) as app:
        (app.folder / "blobs").mkdir()
        yield app


def jobs(app: Extraction) -> int:
    return int(app.sql("select count(*) from holdfast_runs where job = 'extraction.process'")[0][0])


def files(app: Extraction) -> set[str]:
    return {path.name for path in (app.folder / "blobs").iterdir()}


@pytest.mark.contract("X1", "X3", "X6", "X7")
def test_a_document_is_read_and_found_without_a_cloud(app: Extraction) -> None:
    content = (SAMPLES / "lease.pdf").read_bytes()
    response = app.post(content, "../lease <b>.pdf")
    uploaded = response.json()
    assert (response.status_code, uploaded["status"], uploaded["job"]["status"]) == (200, "Processing", "PENDING")
    assert (uploaded["name"], uploaded["size"], uploaded["pages"]) == ("lease <b>.pdf", len(content), None)
    document = app.ended(uploaded["id"])
    assert (document["status"], document["pages"], document["job"]["attempts"]) == ("Processed", 2, 0)
    assert {"Tenant": "Ingrid Solberg", "Winch": "good"}.items() <= {
        field["name"]: field["value"] for field in document["fields"]
    }.items()
    best = app.site.get("/search", q="Who has to mend the roof?")["passages"][0]
    assert best["document_id"] == document["id"]
    assert "repairs roof" in best["text"]
    text = app.sql(
        f"select text from document_pages where document_id = '{document['id']}' and number = {best['page']}"
    )
    assert text[0][0][best["start"] : best["end"]] == best["text"]
    assert {name for name in files(app) if document["id"] in name} == {
        document["id"]
    }  # intermediate results are deleted
    file = app.site.http.get(f"/documents/{document['id']}/file")
    assert (file.content, file.headers["content-disposition"].partition(";")[0]) == (content, "attachment")
    assert app.site.get("/documents")["documents"][0]["id"] == document["id"]


@pytest.mark.contract("X1", "S4")
def test_jobs_can_be_started_only_through_the_application(app: Extraction) -> None:
    document = app.ended(app.upload(pdf("About whales.")))
    [[run_id]] = app.sql(f"select run_id from uploads where id = '{document['id']}'")
    before = jobs(app)
    for path, body in (
        ("/holdfast/api/runs", {"job": "extraction.process", "args": {"document_id": document["id"]}}),
        (f"/holdfast/api/runs/{run_id}/again", None),
        ("/holdfast/api/runs/again", {"job": "extraction.process"}),
    ):
        refused = app.site.http.post(path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "only_from_code")
        assert refused.json()["start_at"] == "/documents"
        assert app.site.http.get("/documents").status_code == 200
    assert jobs(app) == before


@pytest.mark.contract("X4")
@pytest.mark.parametrize(
    ("content", "failure_type"),
    [(encrypted(), "ENCRYPTED"), (pdf(*["x"] * 31), "TOO_MANY_PAGES"), (pdf(""), "IMAGE_ONLY")],
    ids=["encrypted", "too many pages", "image only"],
)
def test_an_unreadable_document_fails_at_once_with_its_reason(
    app: Extraction, content: bytes, failure_type: str
) -> None:
    document = app.ended(app.upload(content))
    job = document["job"]
    assert (document["status"], job["status"], job["attempts"], job["failure_type"]) == (
        "Failed", "FAILED", 1, failure_type,
    )  # fmt: skip
    assert job["error_log"]
    assert document["chunks"] == []


@pytest.mark.contract("X1")
def test_a_file_that_is_not_a_pdf_or_too_large_is_refused(app: Extraction) -> None:
    before = app.documents(), files(app)
    refused = [
        app.post(b"PK\x03\x04 a zip file", "a.pdf"),
        app.post(pdf("x") + b"x" * 400_000),
        app.post(b""),
        app.site.http.post("/documents", data={"no": "file"}),
        app.site.http.post("/documents", content=b"nonsense", headers={"Content-Type": "text/plain"}),
    ]
    assert all(400 <= answer.status_code < 500 for answer in refused)
    assert all(answer.json()["code"] for answer in refused)
    assert (app.documents(), files(app)) == before


@pytest.mark.contract("X1")
def test_a_file_that_can_t_be_stored_leaves_no_rows(app: Extraction) -> None:
    before = app.documents(), jobs(app)
    blobs, aside = app.folder / "blobs", app.folder / "aside"
    blobs.rename(aside)
    blobs.write_bytes(b"a file where a folder should be")
    try:
        response = app.post(pdf("x"))
    finally:
        blobs.unlink()
        aside.rename(blobs)
    assert (response.status_code, response.json()["code"]) == (503, "storage_unavailable")
    assert (app.documents(), jobs(app)) == before


@pytest.mark.contract("X1")
def test_a_file_without_a_document_is_deleted_later(app: Extraction) -> None:
    before, documents, submitted = files(app), app.documents(), jobs(app)
    app.sql("create trigger refuse before insert on uploads begin select raise(abort, 'not now'); end")
    try:
        assert app.post(pdf("x")).status_code >= 500
    finally:
        app.sql("drop trigger refuse")
    assert (app.documents(), jobs(app)) == (documents, submitted)
    [unused] = files(app) - before
    (app.folder / "blobs" / "part00000000000000000000").write_bytes(b"left by a crash")

    _make_old(app, files(app) - {unused})
    _delete_unused_files(app, slot=0)
    wait_for(lambda: "part00000000000000000000" not in files(app), "the file left by a crash is deleted")
    assert files(app) == before | {unused}  # files of documents stay, and so do young files
    _make_old(app, {unused})
    _delete_unused_files(app, slot=5)
    wait_for(lambda: unused not in files(app), "the file without rows is deleted")
    assert files(app) == before


def _make_old(app: Extraction, names: set[str]) -> None:
    for name in names:
        os.utime(app.folder / "blobs" / name, (1, 1))


def _delete_unused_files(app: Extraction, *, slot: int) -> None:
    """Trigger the clean-up now, for a slot in the past."""
    body = {"scheduled_for": f"2021-04-17T12:{slot:02}:00Z"}
    response = app.site.http.post("/holdfast/api/schedules/extraction.delete_unused_files/trigger", json=body)
    assert response.status_code < 300, response.text


def test_deleting_a_document_deletes_everything_that_was_read_from_it(app: Extraction) -> None:
    document_id = app.upload(pdf("Customer: Ada", "Something else."))
    during_job = app.site.http.delete(f"/documents/{document_id}")  # its job may be running
    assert during_job.status_code == 204
    done = app.ended(app.upload(pdf("Customer: Ada", "Something else.")))
    assert app.site.http.delete(f"/documents/{done['id']}").status_code == 204
    for table, column in (("uploads", "id"), *((f"document_{part}", "document_id") for part in ("fields", "chunks"))):
        assert app.sql(f"select count(*) from {table} where {column} in ('{done['id']}', '{document_id}')") == [(0,)]
    assert not {name for name in files(app) if done["id"] in name}
    # The document's run stays, but contains neither text nor vectors.
    steps = app.sql(f"select name, length(result) from holdfast_steps where run_id = '{done['job']['id']}'")
    assert {name for name, length in steps if length < 100} == {"begin", "read", "embed 0"}
    unfinished = (
        "select count(*) from holdfast_run_view where state in ('queued', 'running') and job = 'extraction.process'"
    )
    wait_for(lambda: app.sql(unfinished) == [(0,)], "the job of the deleted document has ended")
    assert not files(app) & {done["id"], document_id}


@pytest.mark.parametrize("document_id", ["0" * 32, "nobody", "%00", "..%2f..%2fetc", "a" * 300])
def test_an_unknown_document_is_not_found(app: Extraction, document_id: str) -> None:
    responses = [
        app.site.http.get(f"/documents/{document_id}"),
        app.site.http.get(f"/documents/{document_id}/file"),
        app.site.http.post(f"/documents/{document_id}/jobs"),
        app.site.http.delete(f"/documents/{document_id}"),
    ]
    assert {response.status_code for response in responses} == {404}


def test_a_document_can_be_processed_again_when_its_job_has_ended(app: Extraction) -> None:
    document = app.ended(app.upload(pdf("Customer: Ada")))
    assert app.site.http.post(f"/documents/{document['id']}/jobs").status_code == 200
    again = app.ended(document["id"])
    assert again["job"]["id"] != document["job"]["id"]
    assert again["chunks"] == document["chunks"]


def test_a_search_accepts_any_text(app: Extraction) -> None:
    app.ended(app.upload(pdf("Customer: Ada")))
    for question in (
        "",
        " ",
        "?",
        "\x00",
        "the of",
        "x" * 500,
        "🦭",
        "' or 1=1 --",
        "\ud83d".encode("utf-8", "replace"),
    ):
        assert app.site.http.get("/search", params={"q": question}).status_code == 200, question
    assert app.site.http.get("/search", params={"q": "x" * 501}).status_code == 422
    assert app.site.get("/search", q="")["passages"] == []


def test_every_route_needs_a_token(app: Extraction) -> None:
    for method, path in (
        ("GET", "/documents"),
        ("POST", "/documents"),
        ("GET", "/search"),
        ("GET", "/documents/x/file"),
    ):
        response = app.site.http.request(method, path, headers={"Authorization": "Bearer not-a-valid-token"})
        assert response.status_code in (401, 403)


@pytest.fixture
def page(browser: Browser, app: Extraction) -> Iterator[Page]:
    """A page of a signed-in user; the browser must not log an error or a warning."""
    errors: list[str] = []
    context = browser.new_context(viewport={"width": 390, "height": 844})
    context.set_default_timeout(TIMEOUT)
    context.add_init_script(LOG_VIOLATIONS)
    page = context.new_page()
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    expect.set_options(timeout=TIMEOUT)
    page.goto(f"{app.site.address}/documents?token={TOKEN}")
    yield page
    context.close()
    assert errors == []


def test_a_dropped_file_is_read_and_its_page_updates_by_itself(page: Page, app: Extraction) -> None:
    page.evaluate(DROP, ["invoice.pdf", list((SAMPLES / "invoice.pdf").read_bytes())])
    expect(page.locator("h1")).to_contain_text("invoice.pdf")
    page.evaluate("window.stayed = true")
    expect(page.locator("h1 .state")).to_have_text("processed")  # without a reload
    expect(page.locator("#fields")).to_contain_text("Northwater Chandlers Ltd")
    expect(page.locator("#sample-reader")).to_contain_text("finds 72 % of the fields")
    assert page.evaluate("window.stayed") is True
    field = page.locator("#fields a", has_text="Due date")
    field.focus()  # keyboard focus selects the text, too
    expect(page.locator("mark.selected")).to_have_text("2 April 2031")
    field.click()
    expect(page.locator("mark:target")).to_have_text("2 April 2031")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert faults(page, everything=True) == []
    page.emulate_media(color_scheme="dark")
    assert faults(page, everything=False) == []

    page.goto(f"{app.site.address}/search")
    page.get_by_label("Question").fill("What happens if the invoice is paid late?")
    page.get_by_role("button", name="Search").click()
    best = page.locator(".passage").first
    expect(best).to_contain_text("Late payments bear interest")
    expect(best.locator("mark").first).to_be_visible()
    assert faults(page, everything=True) == []
    best.get_by_role("link").click()
    expect(page.locator(".sheet:target")).to_contain_text("Late payments")

    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete document").click()
    expect(page.locator("h1")).to_contain_text("Documents")
    expect(page.get_by_role("link", name="invoice.pdf")).to_have_count(0)


def test_markup_in_a_document_is_shown_as_text(page: Page, app: Extraction) -> None:
    hostile = "Customer: <script>document.title='hijacked'</script>\n{{ 7*7 }} <img src=x onerror=alert(1)>"
    document = app.ended(app.upload(pdf(hostile), "<img src=x onerror=alert(1)>.pdf"))
    page.goto(f"{app.site.address}/documents/{document['id']}")
    expect(page.locator(".sheet-text")).to_contain_text("{{ 7*7 }} <img src=x")
    expect(page.locator("#fields")).to_contain_text("<script>document.title='hijacked'</script>")
    page.goto(f"{app.site.address}/search?q=customer")
    expect(page.locator(".passages")).to_contain_text("<script>")
    expect(page).not_to_have_title(re.compile("hijacked"))
