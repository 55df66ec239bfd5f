"""Pages of the daily brief: JSON for programs, and HTML in a real browser, at the same URLs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from apps.dailybrief import brief_events, editions, schedules
from apps.dailybrief.events import cluster
from apps.dailybrief.feeds import ingest
from apps.dailybrief.samples.articles import NEWSPAPERS
from apps.dailybrief.settings import Settings
from apps.dailybrief.tables import Feed, RawArticle
from apps.dailybrief.tests.newsroom import open_database
from apps.dailybrief.tests.two_services import TOKEN, TwoServices, sample_feeds
from apps.shared.database import Database
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import update
from tests.browser.conftest import LOG_VIOLATIONS, TIMEOUT

from holdfast import Holdfast
from holdfast.testing import Manual

pytestmark = pytest.mark.timeout(240)
SETTINGS = Settings(allow_private_addresses=True, host_pause=timedelta(seconds=0.01))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoServices]:
    """The web service, with the sample articles read, grouped and published."""
    with ExitStack() as stack:
        found = TwoServices(tmp_path_factory.mktemp("pages"))
        stack.callback(found.close)
        found.web(workers=1)
        for address in stack.enter_context(sample_feeds()):
            found.client.post("/feeds", json={"url": address}).raise_for_status()
        work(stack.enter_context(closing(open_database(f"sqlite:///{found.database}"))))
        register_worker(f"sqlite:///{found.database}")
        yield found


def register_worker(url: str) -> None:
    """Register a worker that does nothing, so that slots can be triggered."""
    with Holdfast(url) as hf:
        jobs = list(schedules.PREFIXES)
        Manual(hf).worker("host:1:k2dailybrief-worker:0", queues=[schedules.QUEUE], jobs=jobs).register()


def work(database: Database) -> None:
    """Do the work of three jobs in this process."""
    ingest(database, SETTINGS)
    cluster(database, SETTINGS)
    editions.publish(database, SETTINGS, day=brief_events.day_of(datetime.now(UTC), SETTINGS.zone))


@pytest.fixture(params=[(1280, "light"), (390, "dark")], ids=["wide", "phone"])
def page(request: pytest.FixtureRequest, browser: Browser, site: TwoServices) -> Iterator[Page]:
    """A signed-in browser; fails on console errors and on pages that are wider than the screen."""
    width, scheme = request.param
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(TIMEOUT)
    context.add_init_script(LOG_VIOLATIONS)
    opened = context.new_page()
    opened.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    opened.goto(f"{site.url}/?token={TOKEN}")
    yield opened
    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert complaints == []
    context.close()


# JSON


@pytest.mark.contract("J16")
def test_the_brief_has_the_events_of_today_ranked_by_sources_and_age(site: TwoServices) -> None:
    brief = site.get("/")
    assert brief["day"] == brief["edition"] == f"{datetime.now(UTC):%Y-%m-%d}"
    events = brief["events"]
    bridge = events[0]
    assert "bridge" in bridge["title"].lower()
    assert {"Harbour Courier", "Northern Ledger", "Coastline Wire", "Evening Post of Lindmar"} <= set(bridge["sources"])
    assert all(event["article_count"] == len(event["articles"]) and event["summary"] for event in events)
    times = [article["published_at"] for article in bridge["articles"]]
    assert times == sorted(times)
    assert site.get(f"/events/{bridge['id']}") == bridge


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/events/999999", 404, "event_not_found"),
        ("/events/nine", 422, "invalid_request"),
        ("/editions/1999-01-01", 404, "edition_not_found"),
        ("/editions/soon", 422, "invalid_request"),
        ("/job-runs?limit=0", 422, "invalid_request"),
        ("/job-runs?job=%00", 422, "invalid_request"),
        ("/job-runs?status=fine", 422, "unknown_status"),
    ],
)
def test_an_unknown_or_invalid_url_answers_with_an_error_code(
    site: TwoServices, path: str, status: int, code: str
) -> None:
    response = site.client.get(path)
    assert response.status_code == status
    assert response.json()["status"] == status
    assert response.json()["code"] == code


def test_the_three_formats_of_an_edition_agree(site: TwoServices) -> None:
    [edition] = site.get("/editions")["editions"]
    texts = {form: site.client.get(path).text for form, path in edition["forms"].items()}
    feed = json.loads(texts["json"])
    assert [item["title"] for item in feed["items"]]
    for item in feed["items"]:
        assert item["title"] in texts["md"].replace("\\", "")
    digest = editions.digest(markdown=texts["md"], html=texts["html"], json_feed=texts["json"])
    assert digest == edition["sha256"]


def test_a_feed_is_added_once_and_removed_and_invalid_urls_change_nothing(site: TwoServices) -> None:
    before = site.get("/feeds")["feeds"]
    first = site.client.post("/feeds", json={"url": "https://news.example/feed"})
    again = site.client.post("/feeds", json={"url": "https://news.example/feed"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    for bad in ("ftp://news.example/", "https://user:secret@news.example/", "nonsense", ""):
        assert site.client.post("/feeds", json={"url": bad}).status_code == 422, bad
    assert site.client.delete(f"/feeds/{first.json()['id']}").status_code == 204
    assert site.client.delete(f"/feeds/{first.json()['id']}").json()["code"] == "feed_not_found"
    assert site.client.delete(f"/feeds/{2**63}").status_code == 422
    assert site.get("/feeds")["feeds"] == before
    assert {feed["title"] for feed in before} == {paper.name for paper in NEWSPAPERS}
    assert all(feed["last_success_at"] and feed["error"] is None for feed in before)


@pytest.mark.contract("J11")
def test_a_slot_is_triggered_once_and_needs_a_full_time(site: TwoServices) -> None:
    slot = datetime(2026, 1, 1, 6, tzinfo=UTC)
    made = site.trigger("retention_cleanup", slot)
    assert made.status_code == 201
    taken = site.trigger("retention_cleanup", slot)
    assert (taken.status_code, taken.json()["code"]) == (409, "slot_taken")
    other = site.trigger("retention_cleanup", slot + timedelta(hours=1))
    assert (other.status_code, other.json()["code"]) == (409, "still_running")
    for bad in (
        {"job_name": "retention_cleanup"},
        {"job_name": "retention_cleanup", "scheduled_for": "2026-01-01T06:00:00"},
        {"job_name": "retention_cleanup", "scheduled_for": "tomorrow"},
        {"job_name": "retention_cleanup", "scheduled_for": "9999-12-31T23:59:59-14:00"},
        {"job_name": "rm -rf", "scheduled_for": slot.isoformat()},
    ):
        assert site.client.post("/job-runs", json=bad).status_code == 422, bad
    [row] = site.get("/job-runs", job="retention_cleanup")["job_runs"]
    assert (row["id"], row["status"], row["scheduled_for"]) == (made.json()["id"], "running", slot.isoformat())


def test_every_page_needs_a_token_and_a_viewer_can_change_nothing(site: TwoServices) -> None:
    token = site.client.post("/holdfast/api/tokens", json={"name": "reader", "role": "viewer"}).json()["token"]
    with httpx.Client(base_url=site.url) as anonymous:
        for path in ("/", "/events/1", "/feeds", "/job-runs", "/editions", "/service", "/openapi.json"):
            assert anonymous.get(path).status_code == 401, path
    with httpx.Client(base_url=site.url, headers={"Authorization": f"Bearer {token}"}) as reader:
        assert reader.get("/feeds").status_code == 200
        slot = {"job_name": "publish_brief", "scheduled_for": "2026-01-01T00:00:00Z"}
        assert reader.post("/job-runs", json=slot).status_code == 403
        assert reader.post("/feeds", json={"url": "https://news.example/feed"}).status_code == 403
        assert reader.delete("/feeds/1").status_code == 403


# Browser


@pytest.mark.contract("J16")
def test_the_brief_leads_to_an_event_and_an_edition(page: Page) -> None:
    first = page.locator(".event").first
    expect(first.locator("h2")).to_contain_text(re.compile("bridge", re.IGNORECASE))
    expect(first.locator(".timeline circle")).not_to_have_count(0)
    first.locator("summary").click()
    expect(first.locator(".reports")).to_contain_text("Northern Ledger")
    first.locator("h2 a").click()
    expect(page.locator("h1")).to_contain_text(re.compile("bridge", re.IGNORECASE))
    expect(page.get_by_role("article")).not_to_have_count(0)
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Editions").click()
    page.get_by_role("link", name=f"{datetime.now(UTC):%Y-%m-%d}").click()
    expect(page.locator("article").first).to_contain_text("bridge", ignore_case=True)
    expect(page.locator(".edition-body a").first).to_have_attribute("href", re.compile("^https://"))
    # The page's script leaves the times of an edition as they were published.
    expect(page.locator(".edition-body time").first).to_have_text(re.compile(r"^\d\d:\d\d$"))


def test_the_feeds_page_adds_refuses_and_removes_feeds(page: Page) -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Feeds").click()
    page.get_by_label("Add a feed").fill("https://journal.example/feed")
    page.get_by_role("button", name="Add").click()
    row = page.locator("tr", has_text="journal.example")
    expect(row).to_have_count(1)
    page.get_by_label("Add a feed").fill("https://me:secret@journal.example/feed")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_contain_text("password")
    expect(row).to_contain_text("not fetched yet")
    row.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)


@pytest.mark.contract("J11")
def test_the_jobs_page_triggers_a_slot_and_shows_it_in_the_audit_log(page: Page) -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Jobs").click()
    slots = {1280: "2026-02-01T06:00:00", 390: "2026-02-02T06:00:00"}
    width = page.viewport_size["width"] if page.viewport_size else 0
    job = {1280: "rss_ingestion", 390: "event_clustering"}[width]
    for expected in ("The slot is claimed", "was claimed before"):
        page.get_by_role("button", name="Trigger a slot").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Job").select_option(job)
        dialog.get_by_label("Scheduled for").fill(slots[width])
        dialog.get_by_role("button", name="Trigger").click()
        expect(page.locator("#message")).to_contain_text(expected)
    expect(page.locator("tr[id^=run-]", has_text=slots[width].replace("T", " "))).to_contain_text("running")


# Hostile texts; the last test, because it leaves an edition behind


def test_texts_from_feeds_are_escaped_on_every_page(site: TwoServices) -> None:
    hostile, yesterday = """'"><img src=x onerror=alert(1)>{{ 7*7 }}""", datetime.now(UTC) - timedelta(days=1)
    database = open_database(f"sqlite:///{site.database}")
    with database.write() as session:
        feed = Feed(url="https://hostile.example/", title=hostile, error=hostile, error_code="x", added_at=yesterday)
        session.add(feed)
        session.flush()
        for number, at in enumerate((yesterday, datetime.now(UTC))):
            words = {"source": hostile, "title": f"{number} {hostile}", "summary": f"{hostile} {number}"}
            times = {"published_at": at, "fetched_at": at}
            session.add(RawArticle(feed_id=feed.id, url=f"https://hostile.example/{number}", **words, **times))
    cluster(database, SETTINGS)
    editions.publish(database, SETTINGS, day=yesterday.date())
    [event] = [one["id"] for one in site.get("/")["events"] if "onerror" in one["title"]]

    paths = (
        "/",
        f"/events/{event}",
        "/feeds",
        f"/editions/{yesterday:%Y-%m-%d}",
        f"/editions/{yesterday:%Y-%m-%d}.html",
    )
    for path in paths:
        page = site.client.get(path, headers={"Accept": "text/html"})
        assert page.headers["content-type"].startswith("text/html"), path
        assert "&lt;img src=x onerror=alert(1)&gt;{{ 7*7 }}" in page.text, path
        assert "<img" not in page.text, path
        assert "script-src 'self'" in page.headers["content-security-policy"], path
    with database.write() as session:
        session.execute(update(Feed).where(Feed.url == "https://hostile.example/").values(removed_at=yesterday))
    database.close()
