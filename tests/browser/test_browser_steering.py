"""Pipelines, schedules, builds, queues and workers: looked at and steered by hand."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.browser.conftest import Visit
from tests.browser.house import House


def test_a_pipeline_shows_its_stages_and_a_segment_leads_to_its_run(visit: Visit, house: House) -> None:
    page = visit("/pipelines")
    page.get_by_role("link", name="movie").first.click()
    expect(page.locator("#picture a.node")).to_have_count(5)
    expect(page.locator("#picture .edge")).to_have_count(6)
    expect(page.get_by_label("Stage publish, running")).to_be_visible()
    page.get_by_label("Stage audio", exact=False).first.click()
    expect(page.locator("#segments .cells:not(.keyed) a")).to_have_count(24)
    expect(page.get_by_label("Segment 3: failed")).to_have_text("✗")
    page.evaluate("window.stayed = true")

    house.open("publish")
    expect(page.locator("h1 .state")).to_have_text("succeeded")
    expect(page.get_by_label("Stage publish, done")).to_be_visible()
    assert page.evaluate("window.stayed")
    page.get_by_label("Segment 3: failed").click()
    expect(page.locator("h1")).to_contain_text("audio[3]")
    expect(page.locator("#error")).to_contain_text("no voice for scene 3")


def test_a_pipeline_is_done_again_from_a_stage_on(visit: Visit, house: House) -> None:
    house.open("publish")
    house.pipeline.result(timeout=60)
    page = visit(f"/pipelines/{house.pipeline.id}")
    page.get_by_role("button", name="Rerun…").click()
    page.get_by_label("From").select_option("cut")
    page.get_by_role("dialog").get_by_role("button", name="Rerun").click()
    expect(page.locator("#said")).to_contain_text("begins at stage cut")
    expect(page.locator("h1 .state")).to_have_text("succeeded")
    expect(page.locator("table .chip", has_text="used again")).to_have_count(3)


def test_a_slot_is_triggered_by_hand_once(visit: Visit, house: House) -> None:
    page = visit("/schedules", token=house.server.token_of("operator"))
    page.get_by_role("button", name="Trigger a slot of letters.daily").click()
    field = page.get_by_role("dialog").get_by_label("Slot, in UTC")
    assert field.input_value() != ""
    field.fill("2026-02-03T04:05:06")
    page.get_by_role("dialog").get_by_role("button", name="Trigger").click()
    expect(page.locator("#said")).to_contain_text("Slot 2026-02-03T04:05:06Z of letters.daily was triggered")
    expect(page.get_by_label("2026-02-03 04:05:06 UTC: ran and succeeded, by hand")).to_be_visible()

    page.get_by_role("button", name="Trigger a slot of letters.daily").click()
    page.get_by_role("dialog").get_by_label("Slot, in UTC").fill("2026-02-03T04:05:06")
    page.get_by_role("dialog").get_by_role("button", name="Trigger").click()
    expect(page.locator("#said .bad")).to_contain_text("is taken by run")


def test_a_schedule_shows_missed_and_skipped_slots_and_is_paused_with_a_note(visit: Visit, house: House) -> None:
    page = visit("/schedules")
    strip = page.get_by_label("The last slots of letters.daily, then the next")
    expect(strip.locator(".cell-missed")).to_have_count(2)
    assert "had not ended" in (strip.locator(".cell-skipped").get_attribute("title") or "")
    expect(strip.locator(".cell-upcoming")).to_have_count(5)
    page.get_by_role("button", name="Pause letters.daily").click()
    page.get_by_role("dialog").get_by_label("Note").fill("the <b>ledger</b> is closed")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator("main .state", has_text="paused")).to_be_visible()
    expect(page.locator("main")).to_contain_text("the <b>ledger</b> is closed")
    page.get_by_role("button", name="Resume letters.daily").click()
    expect(page.locator("#said")).to_contain_text("goes on")


def test_a_queue_is_paused_with_a_note_limited_and_resumed(visit: Visit, house: House) -> None:
    house.hf.jobs["letters.echo"].using(queue="slow").submit(value="someone")
    page = visit("/queues")
    page.get_by_role("button", name="Pause queue slow").click()
    page.get_by_role("dialog").get_by_label("Note").fill("the provider is down")
    page.keyboard.press("Enter")
    row = page.locator("tr", has=page.get_by_role("link", name="slow"))
    expect(row).to_contain_text("the provider is down")
    row.get_by_role("button", name="Limits").click()
    page.get_by_role("dialog").get_by_label("Runs at once").fill("3")
    page.get_by_role("dialog").get_by_role("button", name="Set").click()
    expect(row).to_contain_text("0 of 3")
    row.get_by_role("button", name="Resume").click()
    expect(page.locator("#said")).to_contain_text("Queue slow goes on")
    assert [(one.by, one.action) for one in house.hf.operations(limit=3)] == [
        ("admin", "resume"),
        ("admin", "limit"),
        ("admin", "pause"),
    ]


def test_a_worker_is_drained_and_a_build_is_made_anew(visit: Visit, house: House) -> None:
    page = visit("/workers")
    expect(page.locator("main")).to_contain_text("other-host")
    page.get_by_role("button", name="Drain worker other-host").click()
    page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(page.locator("tr", has_text="other-host")).to_contain_text("draining")

    page.goto(f"{house.server.url}/builds")
    expect(page.locator("tr", has_text="press.make")).to_contain_text("ready")
    page.get_by_role("link", name="press.make").click()
    page.get_by_role("button", name="Invalidate…").click()
    page.get_by_role("dialog").get_by_label("Because").fill("a new index")
    page.get_by_role("dialog").get_by_role("button", name="Invalidate").click()
    expect(page.locator("main")).to_contain_text("It is stale since")
    page.get_by_role("button", name="Rebuild…").click()
    page.get_by_role("dialog").get_by_role("button", name="Rebuild").click()
    expect(page.locator("h1 .state")).to_have_text("ready")
    expect(page.locator("tr[id^=making]")).to_have_count(2)


def test_a_key_tells_who_holds_it_and_leads_to_those_who_wait(visit: Visit, house: House) -> None:
    page = visit("/keys")
    row = page.locator("tr", has_text="document-1")
    expect(row).to_contain_text("running")
    row.get_by_role("link", name="2", exact=True).click()
    expect(page.locator("#runs-rows tr")).to_have_count(2)
