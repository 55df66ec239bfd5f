"""Passes: given out once, kept as digests, taken back with all that came of them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.conftest import Database

from holdfast import Holdfast, InvalidArguments, PassExists, PassNotFound, tokens
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock


def test_a_token_is_found_by_its_secret_and_the_database_does_not_have_it(hf: Holdfast, database: Database) -> None:
    secret = hf.passes.add("ada", role="operator", by="root")
    found = hf.read(lambda tx: tokens.find_token(tx, tokens.digest(secret)))
    assert found is not None
    assert (found.name, found.role, found.kind, found.expires_at) == ("ada", "operator", "token", None)
    assert hf.passes.list() == [found]
    assert secret not in str(database.all("select digest, name from holdfast_passes"))
    assert [(each.by, each.action, each.what) for each in hf.operations()] == [
        ("root", "add pass", {"name": "ada", "role": "operator"})
    ]


def test_a_name_has_one_token(hf: Holdfast) -> None:
    hf.passes.add("ada")
    with pytest.raises(PassExists):
        hf.passes.add("ada", role="admin")
    assert [(one.name, one.role) for one in hf.passes.list()] == [("ada", "viewer")]


def test_what_is_taken_back_takes_its_sessions_along_and_no_one_elses(hf: Holdfast, clock: FakeClock) -> None:
    for name in ("ada", "bob"):
        hf.passes.add(name)
        expires_at = clock.now() + timedelta(hours=1)
        session = tokens.digest(f"session of {name}")
        hf.do(lambda tx: tokens.sign_in(tx, name, role="viewer", expires_at=expires_at, digest=session))  # noqa: B023
    assert [(one.name, one.kind) for one in hf.passes.list()] == [
        *(("ada", "token"), ("ada", "session"), ("bob", "token"), ("bob", "session")),
    ]
    hf.passes.remove("ada")
    assert {one.name for one in hf.passes.list()} == {"bob"}
    with pytest.raises(PassNotFound):
        hf.passes.remove("ada")


def test_what_has_run_out_is_no_pass_and_goes_with_the_next_clearing(
    hf: Holdfast, clock: FakeClock, database: Database
) -> None:
    secret = hf.passes.add("ada", expires=60)
    hf.passes.add("bob")
    clock.advance(60)
    assert hf.read(lambda tx: tokens.find_token(tx, tokens.digest(secret))) is None
    assert [one.name for one in hf.passes.list()] == ["bob"]
    hf.retain()
    assert database.all("select name from holdfast_passes") == [("bob",)]


@pytest.mark.parametrize(
    ("name", "options"),
    [("", {}), ("a\x00b", {}), ("x" * 201, {}), ("a\nb", {}), ("ada", {"role": "root"}), ("ada", {"expires": 0})],
)
def test_what_makes_no_sense_gives_no_pass(shared_hf: Holdfast, name: str, options: dict[str, object]) -> None:
    with pytest.raises(InvalidArguments):
        shared_hf.passes.add(name, **options)  # type: ignore[arg-type]
    assert shared_hf.passes.list() == []


@pytest.fixture
def shared_hf(sqlite_url: str) -> Holdfast:
    return Holdfast(sqlite_url)


def test_secrets_are_of_256_bits_and_never_the_same() -> None:
    drawn = {Ids().secret() for _ in range(1000)}
    assert len(drawn) == 1000
    assert {len(secret) for secret in drawn} == {43}
    assert Ids(seed=1).secret() == Ids(seed=1).secret()  # a test may want them to be
