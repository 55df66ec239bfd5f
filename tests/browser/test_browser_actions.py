"""Pages of pipelines, schedules, builds, queues and workers in a browser, and their actions."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.browser.conftest import Visit
from tests.browser.sample_site import SampleSite


def test_a_pipeline_shows_its_stages_and_a_segment_leads_to_its_run(visit: Visit, site: SampleSite) -> None:
    page = visit("/pipelines")
    page.get_by_role("link", name="movie").first.click()
    expect(page.locator("#picture a.node")).to_have_count(5)
    expect(page.locator("#picture .edge")).to_have_count(6)
    expect(page.get_by_label("Stage publish, running")).to_be_visible()
    page.get_by_label("Stage audio", exact=False).first.click()
    expect(page.locator("#segments .cells:not(.keyed) a")).to_have_count(24)
    expect(page.get_by_label("Segment 3: failed")).to_have_text("✗")
    page.evaluate("window.stayed = true")

    site.open("publish")
    expect(page.locator("h1 .state")).to_have_text("succeeded")
    expect(page.get_by_label("Stage publish, done")).to_be_visible()
    assert page.evaluate("window.stayed")
    page.get_by_label("Segment 3: failed").click()
    expect(page.locator("h1")).to_contain_text("audio[3]")
    expect(page.locator("#error")).to_contain_text("no voice for scene 3")


def test_a_pipeline_is_rerun_from_a_stage(visit: Visit, site: SampleSite) -> None:
    site.open("publish")
    site.pipeline.result(timeout=60)
    page = visit(f"/pipelines/{site.pipeline.id}")
    page.get_by_role("button", name="Rerun…").click()
    page.get_by_label("Start from").select_option("cut")
    page.get_by_role("dialog").get_by_role("button", name="Rerun").click()
    expect(page.locator("#flash")).to_contain_text("starts at stage cut")
    expect(page.locator("h1 .state")).to_have_text("succeeded")
    expect(page.locator("table .chip", has_text="reused")).to_have_count(3)


def test_a_slot_is_triggered_manually_only_once(visit: Visit, site: SampleSite) -> None:
    page = visit("/schedules", token=site.server.token_of("operator"))
    page.get_by_role("button", name="Trigger a slot of letters.daily").click()
    field = page.get_by_role("dialog").get_by_label("Slot (UTC)")
    assert field.input_value() != ""
    field.fill("2026-02-03T04:05:06")
    page.get_by_role("dialog").get_by_role("button", name="Trigger").click()
    expect(page.locator("#flash")).to_contain_text("Triggered slot 2026-02-03T04:05:06Z of letters.daily")
    expect(page.get_by_label("2026-02-03 04:05:06 UTC: succeeded, by hand")).to_be_visible()

    page.get_by_role("button", name="Trigger a slot of letters.daily").click()
    page.get_by_role("dialog").get_by_label("Slot (UTC)").fill("2026-02-03T04:05:06")
    page.get_by_role("dialog").get_by_role("button", name="Trigger").click()
    expect(page.locator("#flash .bad")).to_contain_text("is taken by run")


def test_a_schedule_shows_missed_and_skipped_slots_and_is_paused_with_a_note(visit: Visit, site: SampleSite) -> None:
    page = visit("/schedules")
    strip = page.get_by_label("Past slots of letters.daily, then the next ones")
    expect(strip.locator(".cell-missed")).to_have_count(2)
    assert "had not ended" in (strip.locator(".cell-skipped").get_attribute("title") or "")
    expect(strip.locator(".cell-upcoming")).to_have_count(5)
    page.get_by_role("button", name="Pause letters.daily").click()
    page.get_by_role("dialog").get_by_label("Note").fill("the <b>database</b> is read-only")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator("main .state", has_text="paused")).to_be_visible()
    expect(page.locator("main")).to_contain_text("the <b>database</b> is read-only")
    page.get_by_role("button", name="Resume letters.daily").click()
    expect(page.locator("#flash")).to_contain_text("is resumed")


def test_a_queue_is_paused_with_a_note_limited_and_resumed(visit: Visit, site: SampleSite) -> None:
    site.hf.jobs["letters.echo"].using(queue="slow").submit(value="1")
    page = visit("/queues")
    page.get_by_role("button", name="Pause queue slow").click()
    page.get_by_role("dialog").get_by_label("Note").fill("the provider is down")
    page.keyboard.press("Enter")
    row = page.locator("tr", has=page.get_by_role("link", name="slow"))
    expect(row).to_contain_text("the provider is down")
    row.get_by_role("button", name="Limits").click()
    page.get_by_role("dialog").get_by_label("Concurrency").fill("3")
    page.get_by_role("dialog").get_by_role("button", name="Set").click()
    expect(row).to_contain_text("0 of 3")
    row.get_by_role("button", name="Resume").click()
    expect(page.locator("#flash")).to_contain_text("Queue slow is resumed")
    assert [(one.by, one.action) for one in site.hf.audit_log(limit=3)] == [
        ("admin", "resume"),
        ("admin", "limit"),
        ("admin", "pause"),
    ]


def test_a_worker_is_drained_and_a_build_is_rebuilt(visit: Visit, site: SampleSite) -> None:
    page = visit("/workers")
    expect(page.locator("main")).to_contain_text("other-host")
    page.get_by_role("button", name="Drain worker other-host").click()
    page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(page.locator("tr", has_text="other-host")).to_contain_text("draining")

    page.goto(f"{site.server.url}/builds")
    expect(page.locator("tr", has_text="environments.install")).to_contain_text("ready")
    page.get_by_role("link", name="environments.install").click()
    page.get_by_role("button", name="Invalidate…").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("a new index")
    page.get_by_role("dialog").get_by_role("button", name="Invalidate").click()
    expect(page.locator("main")).to_contain_text("Stale since")
    page.get_by_role("button", name="Rebuild…").click()
    page.get_by_role("dialog").get_by_role("button", name="Rebuild").click()
    expect(page.locator("h1 .state")).to_have_text("ready")
    expect(page.locator("tr[id^=history]")).to_have_count(2)


def test_a_key_page_shows_the_holder_and_links_to_the_waiting_runs(visit: Visit, site: SampleSite) -> None:
    page = visit("/keys")
    row = page.locator("tr", has_text="document-1")
    expect(row).to_contain_text("running")
    row.get_by_role("link", name="2", exact=True).click()
    expect(page.locator("#runs-rows tr")).to_have_count(2)
