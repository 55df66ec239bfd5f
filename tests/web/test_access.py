"""Access: tokens, sessions, roles and requests from other sites."""

from __future__ import annotations

import re

import httpx
import pytest
from tests.web.conftest import TOKEN, Serve, Server

from holdfast import Holdfast
from holdfast.testing import FakeClock

PAGE = {"Accept": "text/html,application/xhtml+xml"}


def test_a_program_without_a_token_is_told_how_to_send_one(shared: Server) -> None:
    answer = shared.client().get("/api/runs/none")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "not_signed_in"


def test_a_browser_without_a_session_is_redirected_to_sign_in_and_back(shared: Server) -> None:
    client = shared.client(headers=PAGE)
    answer = client.get("/?state=failed")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=%2F%3Fstate%3Dfailed")
    page = client.get(answer.headers["location"])
    assert page.status_code == 200
    assert 'name="next" value="/?state=failed"' in page.text
    back = client.post("/sign-in", data={"token": TOKEN, "next": "/?state=failed"})
    assert (back.status_code, back.headers["location"]) == (303, "/?state=failed")
    assert client.get("/?state=failed").status_code == 200


def test_a_link_with_a_token_signs_in_and_redirects_without_it(shared: Server) -> None:
    client = shared.client(headers=PAGE)
    answer = client.get("/", params={"token": TOKEN, "a": "1 2"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/?a=1+2")
    assert client.get("/").status_code == 200
    wrong = shared.client(headers=PAGE).get("/", params={"token": "wrong"})
    assert wrong.status_code == 401
    assert "unknown or has expired" in wrong.text
    assert "set-cookie" not in wrong.headers
    by_program = shared.client().get("/api/runs/none", params={"token": TOKEN})
    assert by_program.status_code == 401


@pytest.mark.parametrize(
    "there", ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"]
)
def test_sign_in_redirects_to_no_other_site(shared: Server, there: str) -> None:
    answer = shared.client().post("/sign-in", data={"token": TOKEN, "next": there})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_the_session_cookie_is_limited_to_this_server_and_hidden_from_scripts(shared: Server) -> None:
    answer = shared.client().post("/sign-in", data={"token": TOKEN})
    name, attributes = answer.headers["set-cookie"].partition("=")[0], answer.headers["set-cookie"].lower()
    assert re.fullmatch(r"holdfast_[0-9a-f]{8}", name)
    for attribute in ("httponly", "samesite=lax", "path=/", "max-age=43200"):
        assert attribute in attributes
    assert "secure" not in attributes
    assert TOKEN not in attributes


def test_a_proxy_that_ends_tls_makes_the_cookie_secure(shared: Server) -> None:
    proxied = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
    cookie = shared.client().post("/sign-in", data={"token": TOKEN}, headers=proxied).headers["set-cookie"]
    assert cookie.startswith("__Host-holdfast_")
    assert "; Secure" in cookie


def test_two_servers_on_one_host_keep_separate_sessions(shared: Server, serve: Serve) -> None:
    other = serve(shared.hf)
    with httpx.Client(headers=PAGE) as browser:
        for each in (shared, other):
            browser.post(f"{each.url}/sign-in", data={"token": TOKEN})
        assert len(browser.cookies) == 2
        assert [browser.get(f"{each.url}/").status_code for each in (shared, other)] == [200, 200]


def test_a_session_ends_at_sign_out(shared: Server) -> None:
    client = shared.client("viewer", cookie=True, headers=PAGE)
    secret = dict(client.cookies)
    assert client.get("/").status_code == 200
    assert client.post("/sign-out").status_code == 303
    assert not client.cookies
    client.cookies.update(secret)
    assert client.get("/").status_code == 303  # the old cookie is no longer accepted either


def test_a_revoked_or_expired_token_ends_its_sessions(sqlite_url: str, serve: Serve) -> None:
    clock = FakeClock()
    with Holdfast(sqlite_url, clock=clock) as hf:
        served = serve(hf)
        ada = hf.tokens.add("ada", role="operator")
        by_token = served.client(headers={"Authorization": f"Bearer {ada}"})
        by_cookie = served.client(headers=PAGE)
        by_cookie.post("/sign-in", data={"token": ada})
        bob = served.client(headers=PAGE)
        bob.post("/sign-in", data={"token": hf.tokens.add("bob", expires=3600)})
        assert [each.get("/").status_code for each in (by_token, by_cookie, bob)] == [200, 200, 200]
        hf.tokens.remove("ada")
        clock.advance(4)
        assert [each.get("/").status_code for each in (by_token, by_cookie, bob)] == [401, 303, 200]
        clock.advance(3600)
        assert bob.get("/").status_code == 303


def test_a_session_of_the_fixed_token_ends_when_that_token_is_changed(sqlite_url: str, serve: Serve) -> None:
    with Holdfast(sqlite_url) as hf:
        served = serve(hf)
        assert served.site is not None
        ours, adas = served.client(headers=PAGE), served.client(headers=PAGE)
        ours.post("/sign-in", data={"token": TOKEN})
        adas.post("/sign-in", data={"token": hf.tokens.add("ada")})
        assert [each.get("/").status_code for each in (ours, adas)] == [200, 200]
        served.site.access.take("another-fixed-admin-token")
        assert [each.get("/").status_code for each in (ours, adas)] == [303, 200]
        assert served.client(headers={"Authorization": f"Bearer {TOKEN}"}).get("/api/queues").status_code == 401


def test_a_change_in_a_session_must_come_from_our_own_pages(shared: Server) -> None:
    client = shared.client("viewer", cookie=True)
    own = client.headers.pop("X-CSRF-Token")
    assert client.post("/sign-out").json()["code"] == "csrf_missing"
    assert client.post("/sign-out", headers={"X-CSRF-Token": own[::-1]}).json()["code"] == "csrf_missing"
    assert client.post("/sign-out", data={"csrf": "wrong"}).json()["code"] == "csrf_missing"
    for foreign in (
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": shared.url, "Sec-Fetch-Site": "cross-site"},
    ):
        answer = client.post("/sign-out", headers={"X-CSRF-Token": own, **foreign})
        assert (answer.status_code, answer.json()["code"]) == (403, "cross_site_request"), foreign
    assert client.post("/sign-out", data={"csrf": own}, headers={"Origin": shared.url}).status_code == 303


def test_a_program_with_a_token_needs_no_csrf_token_for_a_change(shared: Server) -> None:
    assert shared.client("viewer").post("/sign-out", headers={"Origin": "https://evil.example"}).status_code == 303


def test_wrong_tokens_are_rate_limited_and_valid_ones_are_accepted(sqlite_url: str, serve: Serve) -> None:
    clock = FakeClock()
    with Holdfast(sqlite_url, clock=clock) as hf:
        served = serve(hf)
        client, operator = served.client(), served.client("operator")
        operator.get("/api/runs/none")
        answers = [client.post("/sign-in", data={"token": f"wrong-{number}"}).status_code for number in range(25)]
        assert answers == [401] * 20 + [429] * 5
        refused = client.get("/api/runs/none", headers={"Authorization": "Bearer wrong"})
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
        assert refused.headers["retry-after"] == "3"
        assert operator.get("/api/runs/none").status_code == 404  # a client that was accepted before is still accepted
        clock.advance(3)
        assert client.post("/sign-in", data={"token": TOKEN}).status_code == 303


def test_a_page_of_another_site_cannot_sign_anyone_in(shared: Server) -> None:
    answer = shared.client().post("/sign-in", data={"token": TOKEN}, headers={"Sec-Fetch-Site": "cross-site"})
    assert (answer.status_code, answer.json()["code"]) == (403, "cross_site_request")


def test_too_many_requests_are_rate_limited(sqlite_url: str, serve: Serve) -> None:
    with Holdfast(sqlite_url, max_requests_per_second=1) as hf:
        client = serve(hf).client("admin")
        answers = [client.get("/api/runs/none") for _ in range(8)]
        assert {answer.status_code for answer in answers[:4]} == {404}
        assert answers[-1].status_code == 429
        assert answers[-1].headers["retry-after"] == "1"
