"""Every page: accessible at every width and in both themes, with hostile text shown as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Visit, Visits
from tests.browser.sample_site import HOSTILE, SampleSite
from tests.contract.helpers.workers import register
from tests.waiting import wait_for

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
# Viewport width, colour scheme, and whether to check all rules or only colour contrast.
VIEWS: tuple[tuple[int, Literal["light", "dark"], bool], ...] = (
    (1440, "light", True),
    (1440, "dark", False),
    (390, "dark", True),
    (390, "light", False),
)
GRAVE = ("serious", "critical")
INJECTED = "document.title === 'injected' || document.querySelector('main script, main img:not([src^=\"/\"])') !== null"


def paths(site: SampleSite) -> list[str]:
    """A path for every kind of page."""
    pages = ["/", "/runs?state=failed&error=November", "/pipelines", "/schedules", "/builds", "/keys"]
    pages += ["/queues", "/workers", "/schedules/letters.daily", f"/builds/{site.built.id}"]
    pages += [f"/pipelines/{site.pipeline.id}?stage=audio", "/runs/nothing-like-that"]
    return pages + [f"/runs/{run.id}" for run in (site.failed, site.busy[0], site.pipeline)]


@pytest.mark.timeout(300)
def test_no_page_has_a_serious_accessibility_fault(visits: Visits, site: SampleSite) -> None:
    visits.expected = ("404",)
    page = visits.page("/")
    faults: list[str] = []
    for path in paths(site):
        page.goto(site.server.url + path)
        page.wait_for_selector("h1")
        for width, scheme, everything in VIEWS:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            faults += [f"{path} {width} {scheme}: {fault}" for fault in _faults(page, everything=everything)]
            wide = page.evaluate("document.documentElement.scrollWidth")
            if wide > width:
                faults.append(f"{path} is {wide} pixels wide, more than {width}")
    assert faults == []


def test_the_sign_in_page_has_no_serious_accessibility_fault(visit: Visit) -> None:
    page = visit("/sign-in", token=None, width=390)
    assert _faults(page, everything=True) == []
    page.emulate_media(color_scheme="dark")
    assert _faults(page, everything=False) == []


def _faults(page: Page, *, everything: bool) -> list[str]:
    """The serious faults that axe finds, with all its rules or only the one for contrast."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    rules: dict[str, Any] = {} if everything else {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
    found = page.evaluate(
        "(rules) => axe.run(document, {resultTypes: ['violations'], preload: false, ...rules})", rules
    )
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]} ({len(one['nodes'])})"
        for one in found["violations"]
        if one["impact"] in GRAVE
    ]


def test_hostile_text_is_shown_as_text_on_every_page(visit: Visit, site: SampleSite) -> None:
    hf = site.hf
    key = f"document\u202e/{HOSTILE[:60]}"
    run = hf.jobs["letters.fail"].using(tags={"<b>": "<i>\u202e"}).submit(text=HOSTILE)
    site.work("hostile", key=key)
    hf.jobs["letters.echo"].using(queue="<svg onload=alert(1)>").submit(value="x")
    hf.queues.pause("<svg onload=alert(1)>", note=HOSTILE)
    register(hf, "<script>\x1b[31m", host="<b>host</b>", queues=["<i>"], expires_at=hf.clock.now().replace(year=2100))
    wait_for(lambda: hf.get(run).snapshot.ended)
    page = visit(f"/runs/{run.id}")
    expect(page.locator("#error")).to_contain_text("<script>document.title = 'injected'</script>")
    expect(page.locator("#error")).to_contain_text("\\x1b[31mred")
    expect(page.locator("#error .mark", has_text="\\u202e").first).to_be_visible()
    expect(page.locator("#log")).to_contain_text("<img src=x")
    expect(page.locator("#arguments")).to_contain_text("{{ 7*7 }}")
    for path in ("/", "/runs", "/queues", "/workers", "/keys", f"/runs?error={HOSTILE[:40]}", "/runs?tag=<b>%3D<i>"):
        page.goto(site.server.url + path)
        page.wait_for_selector("h1")
        assert not page.evaluate(INJECTED), path
    expect(page.locator("main")).to_contain_text("No matching runs")
    page.goto(f"{site.server.url}/keys")
    expect(page.locator("main")).to_contain_text("\\u202e/<script>")
    page.goto(f"{site.server.url}/queues")
    expect(page.locator("main")).to_contain_text("<svg onload=alert(1)>")


def test_a_text_of_five_megabytes_is_shown_in_part(visit: Visit, site: SampleSite) -> None:
    run = site.submit("letters.echo", value="A very long story. " * 275_000)
    run.result(timeout=60)
    page = visit(f"/runs/{run.id}")
    expect(page.locator("#arguments")).to_contain_text("more characters")
    expect(page.locator("#result")).to_contain_text("more characters")
    assert len(page.content()) < 1_000_000
