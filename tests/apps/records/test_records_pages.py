"""The archive in a real browser: a file is handed in, its run is watched, and its fields are seen in its text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect
from tests.apps.dropping import DROP
from tests.apps.records.serving import SAMPLES, Served
from tests.apps.records.test_records_running import note
from tests.apps.serving import TOKEN
from tests.browser.conftest import TELL_VIOLATIONS

PATIENCE = 60_000


class Visits:
    """Pages of someone who is signed in; the browser must not complain about any of them."""

    def __init__(self, browser: Browser, served: Served) -> None:
        self._browser, self._served = browser, served
        self._contexts: list[BrowserContext] = []
        self.complaints: list[str] = []

    def page(self, path: str, *, width: int = 1280, scripts: bool = True) -> Page:
        context = self._browser.new_context(viewport={"width": width, "height": 900}, java_script_enabled=scripts)
        context.set_default_timeout(PATIENCE)
        context.add_init_script(TELL_VIOLATIONS)
        self._contexts.append(context)
        page = context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(f"{self._served.address}{path}?token={TOKEN}")
        return page

    def _heard(self, told: ConsoleMessage) -> None:
        if told.type in ("error", "warning"):
            self.complaints.append(told.text)

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def visits(browser: Browser, served: Served) -> Iterator[Visits]:
    made = Visits(browser, served)
    expect.set_options(timeout=PATIENCE)
    yield made
    made.close()
    assert made.complaints == []


def test_a_file_is_handed_in_and_its_fields_are_seen_in_its_text(visits: Visits) -> None:
    page = visits.page("/documents")
    page.get_by_label("Hand in a document").set_input_files(SAMPLES / "invoice-that-does-not-add-up.pdf")
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("h1")).to_contain_text("invoice-that-does-not-add-up.pdf")
    page.evaluate("window.stayed = true")
    expect(page.locator("h1 .state")).to_have_text("succeeded")  # without a reload
    assert page.evaluate("window.stayed") is True
    expect(page.locator("#progress .step-succeeded")).to_have_count(4)
    expect(page.locator("#fields h2")).to_have_text("Invoice")
    expect(page.locator("#findings")).to_contain_text("the total says $680.19")

    row = page.locator(".field-row", has_text="FO-77123")
    row.hover()
    expect(page.locator("mark.found")).to_have_text("FO-77123")
    row.focus()  # by keyboard, too
    expect(page.locator("mark.found")).to_have_text("FO-77123")
    page.locator("mark", has_text="October 31, 2026").hover()
    expect(page.locator(".field-row.found")).to_contain_text("2026-10-31")

    page.get_by_role("button", name="Process again").click()
    expect(page.locator("#history tbody tr")).to_have_count(2)
    expect(page.locator("#progress h2")).to_have_text("Run 2")
    expect(page.locator("#history .state-succeeded")).to_have_count(2)
    page.get_by_role("link", name="Run 2").click()
    expect(page.locator("#events")).to_contain_text("RUN_SUCCEEDED")


def test_files_are_dropped_and_what_is_no_document_is_told(visits: Visits) -> None:
    page = visits.page("/documents", width=390)
    visits.complaints.clear()
    page.evaluate(DROP, ["picture.txt", list(b"\x89PNG\r\n\x1a\n" + bytes(100))])
    expect(page.locator(".uploads .refused")).to_contain_text("not of a type")
    visits.complaints.clear()  # the browser tells of the answer 415 itself
    page.evaluate(DROP, ["dropped.txt", list(note("dropped"))])
    expect(page.locator("h1")).to_contain_text("dropped.txt")
    expect(page.locator("h1 .state")).to_have_text("succeeded")
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390


def test_without_scripts_a_file_is_handed_in_all_the_same(visits: Visits, tmp_path: Path) -> None:
    file = tmp_path / "plain.txt"
    file.write_bytes(note("without scripts"))
    page = visits.page("/documents", scripts=False)
    page.get_by_label("Hand in a document").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("h1")).to_contain_text("plain.txt")


def test_text_of_a_stranger_is_text(visits: Visits, served: Served) -> None:
    hostile = b"Dear <script>document.title='taken'</script> Mr <b>Bold</b>,\n\nit is due on 3 May 2024 {{ 7*7 }}"
    document = served.hand_in(hostile, "<img src=x onerror=alert(1)>.txt")
    served.ended(document["runs"][0]["id"])
    page = visits.page(f"/documents/{document['id']}")
    expect(page.locator(".sheet-text")).to_contain_text("<script>document.title='taken'</script>")
    expect(page.locator(".sheet-text")).to_contain_text("{{ 7*7 }}")
    assert "taken" not in page.title().replace("<img", "")
