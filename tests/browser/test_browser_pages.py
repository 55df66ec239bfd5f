"""Every page: fit for everyone, at every width and in both themes; and whatever a stranger wrote is shown as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Visit, Visits
from tests.browser.house import HOSTILE, House
from tests.contract.alive import register
from tests.contract.patience import until

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
# What does not hang on colours is looked at once for each width.
LOOKS: tuple[tuple[int, Literal["light", "dark"], bool], ...] = (
    (1440, "light", True),
    (1440, "dark", False),
    (390, "dark", True),
    (390, "light", False),
)
GRAVE = ("serious", "critical")
TAKEN = "document.title === 'taken' || document.querySelector('main script, main img:not([src^=\"/\"])') !== null"


def paths(house: House) -> list[str]:
    """Every kind of page there is."""
    pages = ["/", "/runs?state=failed&error=November", "/pipelines", "/schedules", "/builds", "/keys"]
    pages += ["/queues", "/workers", "/schedules/letters.daily", f"/builds/{house.built.id}"]
    pages += [f"/pipelines/{house.pipeline.id}?stage=audio", "/runs/nothing-like-that"]
    return pages + [f"/runs/{run.id}" for run in (house.failed, house.busy[0], house.pipeline)]


@pytest.mark.timeout(300)
def test_no_page_has_a_serious_fault_for_those_who_see_or_work_otherwise(visits: Visits, house: House) -> None:
    visits.expected = ("404",)
    page = visits.page("/")
    faults: list[str] = []
    for path in paths(house):
        page.goto(house.server.url + path)
        page.wait_for_selector("h1")
        for width, scheme, everything in LOOKS:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            faults += [f"{path} {width} {scheme}: {fault}" for fault in _faults(page, everything=everything)]
            wide = page.evaluate("document.documentElement.scrollWidth")
            if wide > width:
                faults.append(f"{path} is {wide} pixels wide, more than {width}")
    assert faults == []


def test_nobody_is_in_the_sign_in_page_s_way_either(visit: Visit) -> None:
    page = visit("/sign-in", token=None, width=390)
    assert _faults(page, everything=True) == []
    page.emulate_media(color_scheme="dark")
    assert _faults(page, everything=False) == []


def _faults(page: Page, *, everything: bool) -> list[str]:
    """What axe finds, of everything or of contrasts alone."""
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


def test_hostile_texts_are_text_on_every_page(visit: Visit, house: House) -> None:
    hf = house.hf
    key = f"document\u202e/{HOSTILE[:60]}"
    run = hf.jobs["letters.fail"].using(tags={"<b>": "<i>\u202e"}).submit(text=HOSTILE)
    house.work("hostile", key=key)
    hf.jobs["letters.echo"].using(queue="<svg onload=alert(1)>").submit(value="x")
    hf.queues.pause("<svg onload=alert(1)>", note=HOSTILE)
    register(hf, "<script>\x1b[31m", host="<b>host</b>", queues=["<i>"], expires_at=hf.clock.now().replace(year=2100))
    until(lambda: hf.get(run).snapshot.ended)
    page = visit(f"/runs/{run.id}")
    expect(page.locator("#error")).to_contain_text("<script>document.title = 'taken'</script>")
    expect(page.locator("#error")).to_contain_text("\\x1b[31mred")
    expect(page.locator("#error .mark", has_text="\\u202e").first).to_be_visible()
    expect(page.locator("#log")).to_contain_text("<img src=x")
    expect(page.locator("#arguments")).to_contain_text("{{ 7*7 }}")
    for path in ("/", "/runs", "/queues", "/workers", "/keys", f"/runs?error={HOSTILE[:40]}", "/runs?tag=<b>%3D<i>"):
        page.goto(house.server.url + path)
        page.wait_for_selector("h1")
        assert not page.evaluate(TAKEN), path
    expect(page.locator("main")).to_contain_text("No run matches")
    page.goto(f"{house.server.url}/keys")
    expect(page.locator("main")).to_contain_text("\\u202e/<script>")
    page.goto(f"{house.server.url}/queues")
    expect(page.locator("main")).to_contain_text("<svg onload=alert(1)>")


def test_five_megabytes_of_text_are_shown_in_part_and_break_nothing(visit: Visit, house: House) -> None:
    run = house.submit("letters.echo", value="A very long story. " * 275_000)
    run.result(timeout=60)
    page = visit(f"/runs/{run.id}")
    expect(page.locator("#arguments")).to_contain_text("more characters")
    expect(page.locator("#result")).to_contain_text("more characters")
    assert len(page.content()) < 1_000_000
