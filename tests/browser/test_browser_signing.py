"""Signing in, as a person does it: by a link, by a form, with a wrong token."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.browser.conftest import Visit, Visits
from tests.browser.house import House


def test_a_link_with_a_token_opens_signed_in_and_leaves_no_token_behind(visit: Visit, house: House) -> None:
    page = visit("/queues")
    expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    assert page.url == f"{house.server.url}/queues"
    page.goto(f"{house.server.url}/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def test_a_wrong_token_is_refused_and_the_right_one_leads_where_one_wanted_to_go(visits: Visits, house: House) -> None:
    visits.expected = ("401",)
    page = visits.page("/workers", token=None)
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("Token").fill("guess")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not known")

    page.get_by_label("Token").fill(house.server.token)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Workers")
    assert page.url == f"{house.server.url}/workers"


def test_a_viewer_sees_and_is_offered_nothing_to_steer(visit: Visit, house: House) -> None:
    page = visit("/queues", token=house.server.token_of("viewer"))
    expect(page.get_by_role("link", name="archive")).to_be_visible()
    for path in ("/queues", "/workers", "/schedules", f"/pipelines/{house.pipeline.id}", f"/builds/{house.built.id}"):
        page.goto(house.server.url + path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.locator("main form[method=post]").count() == 0, path


def test_who_signs_out_is_out(visit: Visit, house: House) -> None:
    page = visit("/", token=house.server.token_of("operator"))
    page.locator("details.menu > summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.goto(f"{house.server.url}/runs")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
