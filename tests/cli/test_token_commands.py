"""holdfast tokens, on every store."""

from __future__ import annotations

from tests.cli.conftest import Invoke, told

from holdfast import Holdfast


def test_a_token_is_shown_once_and_never_again(holdfast: Invoke, url: str, hf: Holdfast) -> None:
    hf.start()
    added = holdfast("tokens", "add", url, "ada", "--role", "operator")
    token = added.stdout.strip()
    assert (added.exit_code, token[:3]) == (0, "hf_")
    assert "not shown again" in added.stderr
    listed = holdfast("tokens", "list", url)
    header, row = listed.stdout.splitlines()
    assert header.split() == ["NAME", "ROLE", "KIND", "MADE", "RUNS", "OUT"]
    assert row.split()[:3] == ["ada", "operator", "token"]
    assert token not in listed.stdout


def test_json_has_every_field(holdfast: Invoke, url: str, hf: Holdfast) -> None:
    hf.start()
    made = told(holdfast("tokens", "add", url, "reports", "--expires", "30d", "--json"))
    assert made.keys() == {"name", "role", "token"}
    [one] = told(holdfast("tokens", "list", url, "--json"))["items"]
    assert (one["name"], one["role"], one["kind"]) == ("reports", "viewer", "token")
    assert one["expires_at"] > one["made_at"]


def test_one_that_is_removed_is_gone(holdfast: Invoke, url: str, hf: Holdfast) -> None:
    hf.passes.add("ada")
    assert holdfast("tokens", "remove", url, "ada").stdout == "ada has no token any more\n"
    assert hf.passes.list() == []
    assert "no one has a token" in holdfast("tokens", "list", url).stderr
