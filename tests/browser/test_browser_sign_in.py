"""Signing in with a link or a form, and with a wrong token."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.browser.conftest import Visit, Visits
from tests.browser.sample_site import SampleSite


def test_a_link_with_a_token_signs_in_and_leaves_no_token_in_the_address(visit: Visit, site: SampleSite) -> None:
    page = visit("/queues")
    expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    assert page.url == f"{site.server.url}/queues"
    page.goto(f"{site.server.url}/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def test_a_wrong_token_is_refused_and_the_right_one_leads_to_the_requested_page(
    visits: Visits, site: SampleSite
) -> None:
    visits.expected = ("401",)
    page = visits.page("/workers", token=None)
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("Token").fill("guess")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("unknown or has expired")

    page.get_by_label("Token").fill(site.server.token)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Workers")
    assert page.url == f"{site.server.url}/workers"


def test_a_viewer_is_offered_no_actions(visit: Visit, site: SampleSite) -> None:
    page = visit("/queues", token=site.server.token_of("viewer"))
    expect(page.get_by_role("link", name="archive")).to_be_visible()
    for path in ("/queues", "/workers", "/schedules", f"/pipelines/{site.pipeline.id}", f"/builds/{site.built.id}"):
        page.goto(site.server.url + path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.locator("main form[method=post]").count() == 0, path


def test_signing_out_ends_the_session(visit: Visit, site: SampleSite) -> None:
    page = visit("/", token=site.server.token_of("operator"))
    page.locator("details.menu > summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.goto(f"{site.server.url}/runs")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
