"""Screenshots: start a server with sample runs, and take a screenshot of every page at two widths in both themes.

python -m scripts.screenshots FOLDER [PAGE ...]        all pages, or those whose name begins with PAGE
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import uvicorn
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from scripts.sample import application, fill

from holdfast import Holdfast, RunFilter
from holdfast.web import Site, create_app

CHROMIUM = "/usr/bin/chromium-headless-shell"
WIDTHS = (390, 1440)
THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
TOKEN = "a-token-for-screenshots"
QUEUES = ("default", "mail", "documents", "reports", "feeds", "builds", "operations")


@contextlib.contextmanager
def served(hf: Holdfast) -> Iterator[str]:
    """Serve the dashboard of a Holdfast, and yield its address."""
    server = uvicorn.Server(uvicorn.Config(create_app(Site(hf, admin_token=TOKEN)), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        threading.Event().wait(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


def pages_of(hf: Holdfast) -> dict[str, str]:
    """Return the paths of all pages by name, with a run of each state and kind."""
    pages = {name: f"/{name}" for name in ("runs", "pipelines", "schedules", "builds", "keys", "queues", "workers")}
    pages = {"overview": "/"} | pages
    pages |= {
        "runs-failed": "/runs?state=failed",
        "runs-filter": "/runs?job=mail.send&error=smtp&since=2026-01-01",
    }
    pages |= {"runs-parts": "/runs?parts=1", "runs-wrong": "/runs?arg=nonsense"}
    seen: set[str] = set()
    for run in hf.search(limit=500).items:
        name = f"{run.kind or run.job.replace('.', '-')}-{run.state}"
        if name not in seen:
            seen.add(name)
            pages[f"run-{name}"] = f"/runs/{run.id}"
    pipelines = hf.pipelines.list(limit=5)
    pages |= {f"pipeline-{number}": f"/pipelines/{run.id}" for number, run in enumerate(pipelines)}
    for run in hf.search(RunFilter(job="hostile.text"), limit=5).items:
        if len(str(run.args)) > 10_000:
            pages["run-long"] = f"/runs/{run.id}"
    return pages


def take(browser: Browser, address: str, folder: Path, pages: dict[str, str]) -> list[str]:
    """Take the screenshots, and return the problems that the browser reported."""
    problems: list[str] = []
    for theme in THEMES:
        for width in WIDTHS:
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
            page = context.new_page()
            _listen(page, problems)
            page.goto(f"{address}/?token={TOKEN}")
            for name, path in pages.items():
                page.goto(f"{address}{path}")
                page.wait_for_timeout(400)
                _check_width(page, width, name, problems)
                page.screenshot(path=folder / f"{name}-{width}-{theme}.png", full_page=True)
            context.close()
    return problems


def _listen(page: Page, problems: list[str]) -> None:
    def on_message(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(f"{page.url}: {message.text}")

    page.on("console", on_message)
    page.on("pageerror", lambda error: problems.append(f"{page.url}: {error}"))


def _check_width(page: Page, width: int, name: str, problems: list[str]) -> None:
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        problems.append(f"{name} is {wide} pixels wide, more than {width}")


def main() -> int:
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    problems: list[str] = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as temporary:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with Holdfast(f"sqlite:///{temporary}/empty.db") as empty, served(empty) as address:
            pages = {"empty-overview": "/", "empty-runs": "/runs", "sign-in": "/sign-in"}
            problems += take(browser, address, folder, {n: p for n, p in pages.items() if _is(n, wanted)})
        with application(Path(temporary)) as hf, hf.worker(queues=QUEUES), served(hf) as address:
            fill(hf)
            problems += take(browser, address, folder, {n: p for n, p in pages_of(hf).items() if _is(n, wanted)})
            for run in hf.search(RunFilter(state="running")).items:
                hf.cancel(run.id)
        browser.close()
    for problem in dict.fromkeys(problems):
        print(problem)
    return 1 if problems else 0


def _is(name: str, wanted: list[str]) -> bool:
    return not wanted or any(name.startswith(one) for one in wanted)


if __name__ == "__main__":
    sys.exit(main())
