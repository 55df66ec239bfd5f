"""Following and controlling runs in a browser: changes appear without a reload."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect
from tests.browser.conftest import Visit, Visits
from tests.browser.sample_site import SampleSite
from tests.web.conftest import serving

from holdfast import RunFilter


def state_of(page: Page) -> Locator:
    """The state beside a run's name."""
    return page.locator("h1 .state")


def mark(page: Page) -> None:
    """Set a variable that a reload would clear."""
    page.evaluate("window.stayed = true")


def stayed(page: Page) -> bool:
    return bool(page.evaluate("window.stayed === true"))


def test_a_page_follows_the_states_of_a_run_without_a_reload(visit: Visit, site: SampleSite) -> None:
    site.hf.queues.pause("documents", note="not yet")
    run = site.work("watched", key="watched")
    page = visit(f"/runs/{run.id}")
    expect(state_of(page)).to_have_text("queued")
    expect(page.locator("#why")).to_contain_text("queue documents has been paused")
    mark(page)

    site.hf.queues.resume("documents")
    expect(state_of(page)).to_have_text("running")
    expect(page.locator("#log")).to_contain_text("half way")
    site.open("watched")
    expect(state_of(page)).to_have_text("succeeded")
    expect(page.locator("#result")).to_contain_text("worked")
    assert stayed(page)


def test_a_running_run_is_cancelled_and_run_again(visit: Visit, site: SampleSite) -> None:
    run = site.work("unwanted", key="unwanted")
    page = visit(f"/runs/{run.id}", token=site.server.token_of("operator"))
    expect(state_of(page)).to_have_text("running")
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_label("Reason").fill("it was a mistake")
    page.get_by_role("button", name="Cancel run").click()
    expect(state_of(page)).to_have_text("cancelled")
    [operation] = site.hf.audit_log(limit=1)
    assert (operation.by, operation.action, operation.run_id) == ("operator", "cancel", run.id)

    site.open("unwanted")
    page.get_by_role("button", name="Run again…").click()
    page.get_by_role("button", name="Run again", exact=True).click()
    expect(state_of(page)).to_have_text("succeeded")
    assert page.url != f"{site.server.url}/runs/{run.id}"
    expect(page.locator("#related")).to_contain_text("repeats")


def test_all_matching_runs_are_cancelled_after_their_count_was_shown(visit: Visit, site: SampleSite) -> None:
    site.hf.jobs["letters.echo"].using(queue="unserved").submit_many([{"value": f"value-{n}"} for n in range(7)])
    page = visit("/runs?state=queued&job=letters.echo&queue=unserved")
    expect(page.locator("#runs-rows tr")).to_have_count(7)
    page.get_by_role("button", name="Cancel all…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Cancel 7 runs?")
    dialog.get_by_role("button", name="Cancel runs").click()

    expect(state_of(page)).to_have_text("succeeded")
    assert site.hf.count(RunFilter(job="letters.echo", queue="unserved", state="cancelled")).number == 7


def test_the_row_under_the_mouse_stays_where_it_is(visit: Visit, site: SampleSite) -> None:
    site.submit("letters.echo", value="before").result(timeout=60)
    page = visit("/runs?job=letters.echo")
    row = page.locator("#runs-rows tr").nth(1)
    row.hover()
    name, place = row.get_attribute("id"), row.bounding_box()
    new = [site.submit("letters.echo", value=f"later-{number}") for number in range(3)]
    expect(page.locator("#runs-news")).to_contain_text("3 new")
    assert row.get_attribute("id") == name
    held = page.locator(f"#{name}").bounding_box()
    assert held is not None
    assert place is not None
    # The notice above the table, which announces new runs, may move the row down; the new runs themselves must not.
    assert abs(held["x"] - place["x"]) < 1
    assert page.locator("#runs-rows tr").nth(1).get_attribute("id") == name

    page.locator("#runs-news button").click()
    expect(page.locator("#runs-rows tr").first).to_have_attribute("id", f"run-{new[-1].id}")


def test_a_page_says_when_its_server_is_gone(visits: Visits, site: SampleSite) -> None:
    visits.expected = ("ERR_", "Failed to load resource", "htmx:")  # a request may be in progress when the server stops
    with serving(site.hf) as other:
        page = visits.page("/queues", token=None)
        page.goto(f"{other.url}/queues?token={other.token}")
        expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
        with page.expect_response(lambda answer: "/live" in answer.url):
            page.reload()
        expect(page.locator("#connection")).to_be_hidden()
    expect(page.locator("#connection")).to_be_visible()
    expect(page.locator("#connection")).to_contain_text("connection lost")


def test_the_keyboard_reaches_every_action(visit: Visit, site: SampleSite) -> None:
    run = site.work("keys", key="keys")
    page = visit(f"/runs/{run.id}")
    expect(state_of(page)).to_have_text("running")
    reached: list[str] = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent.trim().replace(/\\s+/g, ' ')"))
        if "Cancel…" in reached[-1]:
            break
    assert reached[0] == "Skip to content"
    assert [name for name in reached if name in ("Overview", "Runs", "Workers", "Cancel…")] == [
        *("Overview", "Runs", "Workers"),
        *(["Runs"] if reached.count("Runs") > 1 else []),
        "Cancel…",
    ]
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.evaluate("document.activeElement.textContent") == "Cancel…", "the focus is where it was"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.matches('[data-find]')")
    page.keyboard.type(run.id[:20])
    page.keyboard.press("Enter")
    expect(state_of(page)).to_have_text("running")
    site.open("keys")
    expect(state_of(page)).to_have_text("succeeded")
