"""Tokens: shown once, stored as digests, and revoked with their sessions."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.fixtures import Database

from holdfast import Holdfast, InvalidArguments, TokenExists, TokenNotFound, tokens
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock


def test_a_token_is_found_by_its_secret_which_is_not_stored(hf: Holdfast, database: Database) -> None:
    secret = hf.tokens.add("ada", role="operator", by="root")
    found = hf.read(lambda tx: tokens.find_token(tx, tokens.digest(secret)))
    assert found is not None
    assert (found.name, found.role, found.kind, found.expires_at) == ("ada", "operator", "token", None)
    assert hf.tokens.list() == [found]
    assert secret not in str(database.all("select digest, name from holdfast_tokens"))
    assert [(each.by, each.action, each.details) for each in hf.audit_log()] == [
        ("root", "add token", {"name": "ada", "role": "operator"})
    ]


def test_a_name_has_one_token(hf: Holdfast) -> None:
    hf.tokens.add("ada")
    with pytest.raises(TokenExists):
        hf.tokens.add("ada", role="admin")
    assert [(one.name, one.role) for one in hf.tokens.list()] == [("ada", "viewer")]


def test_revoking_a_token_ends_its_sessions_and_no_others(hf: Holdfast, clock: FakeClock) -> None:
    for name in ("ada", "bob"):
        hf.tokens.add(name)
        expires_at = clock.now() + timedelta(hours=1)
        session = tokens.digest(f"session of {name}")
        hf.do(lambda tx: tokens.sign_in(tx, name, role="viewer", expires_at=expires_at, digest=session))  # noqa: B023
    assert [(one.name, one.kind) for one in hf.tokens.list()] == [
        *(("ada", "token"), ("ada", "session"), ("bob", "token"), ("bob", "session")),
    ]
    hf.tokens.remove("ada")
    assert {one.name for one in hf.tokens.list()} == {"bob"}
    with pytest.raises(TokenNotFound):
        hf.tokens.remove("ada")


def test_an_expired_token_is_refused_and_deleted_by_the_next_prune(
    hf: Holdfast, clock: FakeClock, database: Database
) -> None:
    secret = hf.tokens.add("ada", expires=60)
    hf.tokens.add("bob")
    clock.advance(60)
    assert hf.read(lambda tx: tokens.find_token(tx, tokens.digest(secret))) is None
    assert [one.name for one in hf.tokens.list()] == ["bob"]
    hf.prune()
    assert database.all("select name from holdfast_tokens") == [("bob",)]


@pytest.mark.parametrize(
    ("name", "options"),
    [("", {}), ("a\x00b", {}), ("x" * 201, {}), ("a\nb", {}), ("ada", {"role": "root"}), ("ada", {"expires": 0})],
)
def test_an_invalid_token_request_is_refused(shared_hf: Holdfast, name: str, options: dict[str, object]) -> None:
    with pytest.raises(InvalidArguments):
        shared_hf.tokens.add(name, **options)  # type: ignore[arg-type]
    assert shared_hf.tokens.list() == []


@pytest.fixture
def shared_hf(sqlite_url: str) -> Holdfast:
    return Holdfast(sqlite_url)


def test_secrets_have_256_bits_and_are_never_the_same() -> None:
    drawn = {Ids().secret() for _ in range(1000)}
    assert len(drawn) == 1000
    assert {len(secret) for secret in drawn} == {43}
    assert Ids(seed=1).secret() == Ids(seed=1).secret()  # with a seed, for tests
