"""A real browser: headless Chromium, driven by Playwright, on a site with data on every page.

`./test` installs Debian's package if it has the rights to. Without a browser, these tests are skipped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from tests.browser.sample_site import SampleSite, sample_site

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome", "google-chrome-stable", "chromium-browser")
TIMEOUT = 60_000
expect.set_options(timeout=TIMEOUT)

# Logs each violation of a page's content security policy as an error, which fails the test.
LOG_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`forbidden by the policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
"""


def program() -> str | None:
    """The browser to use, if there is one."""
    named = os.environ.get("HOLDFAST_TEST_CHROMIUM")
    return named or next((found for name in PROGRAMS if (found := shutil.which(name))), None)


# Module scope, not session scope: Playwright keeps an event loop in this thread, and other tests need their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = program()
    if found is None:
        pytest.skip("no Chromium: it is not installed and can't be installed here")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleSite]:
    with sample_site(tmp_path_factory.mktemp("site")) as found:
        yield found


class Visits:
    """Opens pages, and collects the errors and warnings of the browser."""

    def __init__(self, browser: Browser, site: SampleSite) -> None:
        self._browser, self._site = browser, site
        self._contexts: list[BrowserContext] = []
        self.messages: list[str] = []
        self.expected: tuple[str, ...] = ()

    def page(self, path: str = "/", *, token: str | None = "", width: int = 1280, dark: bool = False) -> Page:
        """Open a page by a link with this token: by default the admin's token, and with None no token."""
        context = self._browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
        )
        context.set_default_timeout(TIMEOUT)
        context.add_init_script(LOG_VIOLATIONS)
        self._contexts.append(context)
        page = context.new_page()
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.messages.append(f"{page.url}: {error}"))
        server = self._site.server
        if token is not None:
            path += ("&" if "?" in path else "?") + f"token={token or server.token}"
        page.goto(server.url + path)
        return page

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.messages.append(f"{message.location.get('url')}: {message.text}")

    def close(self) -> None:
        for context in self._contexts:
            context.close()
        unexpected = [one for one in self.messages if not any(part in one for part in self.expected)]
        assert unexpected == [], "the browser logged errors or warnings"


@pytest.fixture
def visits(browser: Browser, site: SampleSite) -> Iterator[Visits]:
    """Opens pages for a test, and fails if the browser logged an unexpected error or warning."""
    made = Visits(browser, site)
    yield made
    made.close()


Visit = Callable[..., Page]


@pytest.fixture
def visit(visits: Visits) -> Visit:
    return visits.page
