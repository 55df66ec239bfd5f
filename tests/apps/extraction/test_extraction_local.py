"""Without any cloud: documents come in and go, what can't be read says why, and no file is left behind."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from apps.extraction import samples
from playwright.sync_api import Browser, Page, expect
from tests.apps.dropping import DROP
from tests.apps.extraction.conftest import Extraction, pdf, running
from tests.apps.extraction.test_extraction_reading import encrypted
from tests.apps.serving import TOKEN
from tests.browser.conftest import TELL_VIOLATIONS
from tests.browser.test_browser_pages import _faults as faults
from tests.process.support import wait_for

SAMPLES = Path(samples.__file__).parent
PATIENCE = 60_000


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extraction]:
    settings = {"EXTRACTION_MAX_BYTES": "400000", "EXTRACTION_MAX_PAGES": "30", "EXTRACTION_RETRY_DELAY": "0.1"}
    with running(tmp_path_factory.mktemp("local"), inside=True, settings=settings) as found:
        (found.folder / "blobs").mkdir()
        yield found


def jobs(app: Extraction) -> int:
    return int(app.sql("select count(*) from holdfast_runs where job = 'extraction.process'")[0][0])


def files(app: Extraction) -> set[str]:
    return {path.name for path in (app.folder / "blobs").iterdir()}


@pytest.mark.contract("X1", "X3", "X6", "X7")
def test_a_document_is_read_and_found_without_a_cloud(app: Extraction) -> None:
    content = (SAMPLES / "lease.pdf").read_bytes()
    answer = app.post(content, "../lease <b>.pdf")
    told = answer.json()
    assert (answer.status_code, told["status"], told["job"]["status"]) == (200, "Processing", "PENDING")
    assert (told["name"], told["size"], told["pages"]) == ("lease <b>.pdf", len(content), None)
    document = app.ended(told["id"])
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
    assert {name for name in files(app) if document["id"] in name} == {document["id"]}  # the analysis is in the tables
    file = app.site.http.get(f"/documents/{document['id']}/file")
    assert (file.content, file.headers["content-disposition"].partition(";")[0]) == (content, "attachment")
    assert app.site.get("/documents")["documents"][0]["id"] == document["id"]


@pytest.mark.contract("X1", "S4")
def test_the_engine_starts_no_job_that_no_document_names(app: Extraction) -> None:
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
def test_what_can_t_be_read_fails_at_once_and_says_why(app: Extraction, content: bytes, failure_type: str) -> None:
    document = app.ended(app.upload(content))
    job = document["job"]
    assert (document["status"], job["status"], job["attempts"], job["failure_type"]) == (
        "Failed", "FAILED", 1, failure_type,
    )  # fmt: skip
    assert job["error_log"]
    assert document["chunks"] == []


@pytest.mark.contract("X1")
def test_what_is_no_pdf_or_too_large_is_not_taken(app: Extraction) -> None:
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
def test_a_file_that_can_t_be_kept_leaves_no_rows(app: Extraction) -> None:
    before = app.documents(), jobs(app)
    blobs, aside = app.folder / "blobs", app.folder / "aside"
    blobs.rename(aside)
    blobs.write_bytes(b"a file where a folder should be")
    try:
        answer = app.post(pdf("x"))
    finally:
        blobs.unlink()
        aside.rename(blobs)
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_unavailable")
    assert (app.documents(), jobs(app)) == before


@pytest.mark.contract("X1")
def test_a_file_whose_rows_could_not_be_written_is_collected_later(app: Extraction) -> None:
    before, documents, submitted = files(app), app.documents(), jobs(app)
    app.sql("create trigger refuse before insert on uploads begin select raise(abort, 'not now'); end")
    try:
        assert app.post(pdf("x")).status_code >= 500
    finally:
        app.sql("drop trigger refuse")
    assert (app.documents(), jobs(app)) == (documents, submitted)
    [left] = files(app) - before
    (app.folder / "blobs" / "part00000000000000000000").write_bytes(b"what a crash has left")

    _age(app, files(app) - {left})
    _collect(app, slot=0)
    wait_for(lambda: "part00000000000000000000" not in files(app), "what a crash has left is collected")
    assert files(app) == before | {left}  # documents keep theirs, and what is young may yet become one
    _age(app, {left})
    _collect(app, slot=5)
    wait_for(lambda: left not in files(app), "the file without rows is collected")
    assert files(app) == before


def _age(app: Extraction, names: set[str]) -> None:
    for name in names:
        os.utime(app.folder / "blobs" / name, (1, 1))


def _collect(app: Extraction, *, slot: int) -> None:
    """Collect now, for a slot that is long over, and not with the next one."""
    body = {"scheduled_for": f"2021-04-17T12:{slot:02}:00Z"}
    answer = app.site.http.post("/holdfast/api/schedules/extraction.collect/trigger", json=body)
    assert answer.status_code < 300, answer.text


def test_a_document_is_deleted_with_all_that_was_read_in_it(app: Extraction) -> None:
    document_id = app.upload(pdf("Customer: Ada", "Something else."))
    while_read = app.site.http.delete(f"/documents/{document_id}")  # its job may be under way
    assert while_read.status_code == 204
    done = app.ended(app.upload(pdf("Customer: Ada", "Something else.")))
    assert app.site.http.delete(f"/documents/{done['id']}").status_code == 204
    for table, column in (("uploads", "id"), *((f"document_{part}", "document_id") for part in ("fields", "chunks"))):
        assert app.sql(f"select count(*) from {table} where {column} in ('{done['id']}', '{document_id}')") == [(0,)]
    assert not {name for name in files(app) if done["id"] in name}
    # A run is left, which remembers when it was read, and nothing of what: neither text nor vectors.
    steps = app.sql(f"select name, length(result) from holdfast_steps where run_id = '{done['job']['id']}'")
    assert {name for name, length in steps if length < 100} == {"begin", "read", "embed 0"}
    ended = "select count(*) from holdfast_run where state in ('queued', 'running') and job = 'extraction.process'"
    wait_for(lambda: app.sql(ended) == [(0,)], "its job is over")
    assert not files(app) & {done["id"], document_id}


@pytest.mark.parametrize("document_id", ["0" * 32, "nobody", "%00", "..%2f..%2fetc", "a" * 300])
def test_a_document_that_is_not_there_is_not_found(app: Extraction, document_id: str) -> None:
    answers = [
        app.site.http.get(f"/documents/{document_id}"),
        app.site.http.get(f"/documents/{document_id}/file"),
        app.site.http.post(f"/documents/{document_id}/jobs"),
        app.site.http.delete(f"/documents/{document_id}"),
    ]
    assert {answer.status_code for answer in answers} == {404}


def test_a_document_is_read_again_when_its_job_is_over(app: Extraction) -> None:
    document = app.ended(app.upload(pdf("Customer: Ada")))
    assert app.site.http.post(f"/documents/{document['id']}/jobs").status_code == 200
    again = app.ended(document["id"])
    assert again["job"]["id"] != document["job"]["id"]
    assert again["chunks"] == document["chunks"]


def test_questions_of_every_kind_are_answered(app: Extraction) -> None:
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


def test_without_a_pass_there_is_nothing(app: Extraction) -> None:
    for method, path in (
        ("GET", "/documents"),
        ("POST", "/documents"),
        ("GET", "/search"),
        ("GET", "/documents/x/file"),
    ):
        answer = app.site.http.request(method, path, headers={"Authorization": "Bearer nobody-at-all-000"})
        assert answer.status_code in (401, 403)


@pytest.fixture
def page(browser: Browser, app: Extraction) -> Iterator[Page]:
    """Someone who is signed in; nothing may make their browser complain."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 390, "height": 844})
    context.set_default_timeout(PATIENCE)
    context.add_init_script(TELL_VIOLATIONS)
    page = context.new_page()
    page.on("console", lambda told: complaints.append(told.text) if told.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    expect.set_options(timeout=PATIENCE)
    page.goto(f"{app.site.address}/documents?token={TOKEN}")
    yield page
    context.close()
    assert complaints == []


def test_a_person_drops_a_file_and_sees_it_read(page: Page, app: Extraction) -> None:
    page.evaluate(DROP, ["invoice.pdf", list((SAMPLES / "invoice.pdf").read_bytes())])
    expect(page.locator("h1")).to_contain_text("invoice.pdf")
    page.evaluate("window.stayed = true")
    expect(page.locator("h1 .state")).to_have_text("processed")  # without a reload
    expect(page.locator("#fields")).to_contain_text("Northwater Chandlers Ltd")
    expect(page.locator("#sample-reader")).to_contain_text("finds 72 % of the fields")
    assert page.evaluate("window.stayed") is True
    field = page.locator("#fields a", has_text="Due date")
    field.focus()  # by keyboard as by mouse
    expect(page.locator("mark.found")).to_have_text("2 April 2031")
    field.click()
    expect(page.locator("mark:target")).to_have_text("2 April 2031")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert faults(page, everything=True) == []
    page.emulate_media(color_scheme="dark")
    assert faults(page, everything=False) == []

    page.goto(f"{app.site.address}/search")
    page.get_by_label("Ask the documents").fill("What happens if the invoice is paid late?")
    page.get_by_role("button", name="Search").click()
    best = page.locator(".passage").first
    expect(best).to_contain_text("Late payments bear interest")
    expect(best.locator("mark").first).to_be_visible()
    assert faults(page, everything=True) == []
    best.get_by_role("link").click()
    expect(page.locator(".sheet:target")).to_contain_text("Late payments")

    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.locator("h1")).to_contain_text("Documents")
    expect(page.get_by_role("link", name="invoice.pdf")).to_have_count(0)


def test_text_of_a_stranger_is_only_text(page: Page, app: Extraction) -> None:
    hostile = "Customer: <script>document.title='taken'</script>\n{{ 7*7 }} <img src=x onerror=alert(1)>"
    document = app.ended(app.upload(pdf(hostile), "<img src=x onerror=alert(1)>.pdf"))
    page.goto(f"{app.site.address}/documents/{document['id']}")
    expect(page.locator(".sheet-text")).to_contain_text("{{ 7*7 }} <img src=x")
    expect(page.locator("#fields")).to_contain_text("<script>document.title='taken'</script>")
    page.goto(f"{app.site.address}/search?q=customer")
    expect(page.locator(".passages")).to_contain_text("<script>")
    expect(page).not_to_have_title(re.compile("taken"))
