"""`holdfast tokens`, on every database."""

from __future__ import annotations

from tests.cli.conftest import Invoke, json_output

from holdfast import Holdfast


def test_a_token_is_shown_once_and_never_again(holdfast: Invoke, url: str, hf: Holdfast) -> None:
    hf.start()
    added = holdfast("tokens", "add", url, "ada", "--role", "operator")
    token = added.stdout.strip()
    assert (added.exit_code, token[:3]) == (0, "hf_")
    assert "not shown again" in added.stderr
    listed = holdfast("tokens", "list", url)
    header, row = listed.stdout.splitlines()
    assert header.split() == ["NAME", "ROLE", "KIND", "CREATED", "EXPIRES"]
    assert row.split()[:3] == ["ada", "operator", "token"]
    assert token not in listed.stdout


def test_json_has_every_field(holdfast: Invoke, url: str, hf: Holdfast) -> None:
    hf.start()
    made = json_output(holdfast("tokens", "add", url, "reports", "--expires", "30d", "--json"))
    assert made.keys() == {"name", "role", "token"}
    [one] = json_output(holdfast("tokens", "list", url, "--json"))["items"]
    assert (one["name"], one["role"], one["kind"]) == ("reports", "viewer", "token")
    assert one["expires_at"] > one["created_at"]


def test_a_revoked_token_is_gone(holdfast: Invoke, url: str, hf: Holdfast) -> None:
    hf.tokens.add("ada")
    assert holdfast("tokens", "remove", url, "ada").stdout == "revoked the token of ada\n"
    assert hf.tokens.list() == []
    assert "no tokens" in holdfast("tokens", "list", url).stderr
