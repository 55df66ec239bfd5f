"""The pages in a real browser: upload a file, watch its run, and see its fields highlighted in the text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from apps.records.tests.records_server import SAMPLES, RecordsServer
from apps.records.tests.test_records_running import note
from apps.shared.tests.drop_file import DROP
from apps.shared.tests.serving import TOKEN
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect
from tests.browser.conftest import LOG_VIOLATIONS

TIMEOUT = 60_000


class Visits:
    """Opens pages as a signed-in user, and collects the errors and warnings of the browser."""

    def __init__(self, browser: Browser, server: RecordsServer) -> None:
        self._browser, self._served = browser, server
        self._contexts: list[BrowserContext] = []
        self.errors: list[str] = []

    def page(self, path: str, *, width: int = 1280, scripts: bool = True) -> Page:
        context = self._browser.new_context(viewport={"width": width, "height": 900}, java_script_enabled=scripts)
        context.set_default_timeout(TIMEOUT)
        context.add_init_script(LOG_VIOLATIONS)
        self._contexts.append(context)
        page = context.new_page()
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.goto(f"{self._served.address}{path}?token={TOKEN}")
        return page

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def visits(browser: Browser, server: RecordsServer) -> Iterator[Visits]:
    opened = Visits(browser, server)
    expect.set_options(timeout=TIMEOUT)
    yield opened
    opened.close()
    assert opened.errors == []


def test_a_file_is_uploaded_and_its_fields_are_highlighted_in_its_text(visits: Visits) -> None:
    page = visits.page("/documents")
    page.get_by_label("Upload a document").set_input_files(SAMPLES / "invoice-that-does-not-add-up.pdf")
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.locator("h1")).to_contain_text("invoice-that-does-not-add-up.pdf")
    page.evaluate("window.stayed = true")
    expect(page.locator("h1 .state")).to_have_text("succeeded")  # without a reload
    assert page.evaluate("window.stayed") is True
    expect(page.locator("#progress .step-succeeded")).to_have_count(4)
    expect(page.locator("#fields h2")).to_have_text("Invoice")
    expect(page.locator("#findings")).to_contain_text("the total is 680.19")

    row = page.locator(".field-row", has_text="FO-77123")
    row.hover()
    expect(page.locator("mark.selected")).to_have_text("FO-77123")
    row.focus()  # keyboard focus selects the text, too
    expect(page.locator("mark.selected")).to_have_text("FO-77123")
    page.locator("mark", has_text="October 31, 2026").hover()
    expect(page.locator(".field-row.selected")).to_contain_text("2026-10-31")

    page.get_by_role("button", name="Process again").click()
    expect(page.locator("#history tbody tr")).to_have_count(2)
    expect(page.locator("#progress h2")).to_have_text("Run 2")
    expect(page.locator("#history .state-succeeded")).to_have_count(2)
    page.get_by_role("link", name="Run 2").click()
    expect(page.locator("#events")).to_contain_text("RUN_SUCCEEDED")


def test_one_click_uploads_a_file_once_after_the_page_has_refreshed_itself(
    visits: Visits, server: RecordsServer
) -> None:
    page = visits.page("/documents")
    for _ in range(2):
        with page.expect_response(lambda response: response.url.split("?")[0].endswith("/documents")):
            page.evaluate("htmx.trigger('#main', 'live')")
    file = {"name": "once.txt", "mimeType": "text/plain", "buffer": note("once")}
    uploads: list[str] = []
    page.on("request", lambda request: uploads.append(request.url) if request.method == "POST" else None)
    page.get_by_label("Upload a document").set_input_files(file)  # type: ignore[arg-type]
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.locator("h1")).to_contain_text("once.txt")
    assert len(uploads) == 1


def test_dropped_files_are_uploaded_and_an_unsupported_one_is_refused(visits: Visits) -> None:
    page = visits.page("/documents", width=390)
    visits.errors.clear()
    page.evaluate(DROP, ["picture.txt", list(b"\x89PNG\r\n\x1a\n" + bytes(100))])
    expect(page.locator(".uploads .refused")).to_contain_text("not of an accepted file type")
    visits.errors.clear()  # the browser logs the response 415
    page.evaluate(DROP, ["dropped.txt", list(note("dropped"))])
    expect(page.locator("h1")).to_contain_text("dropped.txt")
    expect(page.locator("h1 .state")).to_have_text("succeeded")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390


def test_a_file_can_be_uploaded_without_scripts(visits: Visits, tmp_path: Path) -> None:
    file = tmp_path / "plain.txt"
    file.write_bytes(note("without scripts"))
    page = visits.page("/documents", scripts=False)
    page.get_by_label("Upload a document").set_input_files(file)
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.locator("h1")).to_contain_text("plain.txt")


def test_markup_in_a_document_is_shown_as_text(visits: Visits, server: RecordsServer) -> None:
    hostile = b"Dear <script>document.title='hijacked'</script> Mr <b>Bold</b>,\n\nit is due on 3 May 2024 {{ 7*7 }}"
    document = server.upload(hostile, "<img src=x onerror=alert(1)>.txt")
    server.ended(document["runs"][0]["id"])
    page = visits.page(f"/documents/{document['id']}")
    expect(page.locator(".sheet-text")).to_contain_text("<script>document.title='hijacked'</script>")
    expect(page.locator(".sheet-text")).to_contain_text("{{ 7*7 }}")
    assert "hijacked" not in page.title().replace("<img", "")
