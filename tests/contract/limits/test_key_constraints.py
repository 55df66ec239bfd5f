"""Key constraints: the database allows no second run of a key, even if rows are changed with SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast import Holdfast
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database

COLUMNS = (
    "run_id, job, queue, rank, run_key, claim, attempt, takeovers, key_limit, key_number, "
    "holder, started_at, expires_at"
)
COPY = (
    f"insert into holdfast_leases ({COLUMNS}) select {{run_id}}, job, queue, rank, {{run_key}}, 1, 1, 0, "
    "{key_limit}, {key_number}, 'by hand', started_at, expires_at from holdfast_leases where run_id = '{running}'"
)

REFUSED = "(?i)has the key|never change|unique|foreign key|check constraint"
"""Matches the errors of constraints and triggers, but not that of a misspelt statement."""


@pytest.fixture
def process(hf: Holdfast) -> Any:
    @hf.job(name="process", key="document")
    def process(document: str) -> None: ...

    return process


@pytest.mark.contract("P2")
@pytest.mark.parametrize(
    "forged",
    [
        {},
        {"key_number": "2"},
        {"key_number": "2", "key_limit": "2"},
        {"key_number": "0", "key_limit": "0"},
        {"run_key": "null"},
        {"run_key": "null", "key_number": "2", "key_limit": "2"},
        {"run_key": "'document:b'"},
        {"run_key": "''"},
        {"run_id": "'01m00000000000000000000000'", "run_key": "null"},
        {"run_id": "'01m00000000000000000000000'", "key_number": "2", "key_limit": "2"},
    ],
    ids=lambda forged: " ".join(f"{name}={value}" for name, value in forged.items()) or "unchanged",
)
def test_a_copied_lease_cannot_start_a_second_run_of_a_key(
    manual: Manual, database: Database, process: Any, forged: dict[str, str]
) -> None:
    running, second = process.submit("a"), process.submit("a")
    assert len(manual.worker().claim(limit=5)) == 1
    values = {
        "run_id": f"'{second.id}'",
        "run_key": "run_key",
        "key_limit": "key_limit",
        "key_number": "key_number",
    } | forged
    with pytest.raises(database.errors, match=REFUSED):
        database.run(COPY.format(running=running.id, **values))
    assert database.count("leases") == 1
    assert second.refresh().state == "queued"


@pytest.mark.contract("P2")
@pytest.mark.parametrize(
    "change",
    [
        "holdfast_leases set run_key = null where run_id = '{running}'",
        "holdfast_leases set run_key = 'document:b' where run_id = '{running}'",
        "holdfast_leases set key_number = 2 where run_id = '{running}'",
        "holdfast_leases set key_limit = 2, key_number = 2 where run_id = '{running}'",
        "holdfast_leases set run_id = '{other}'",
        "holdfast_runs set run_key = null where id = '{second}'",
        "holdfast_runs set run_key = 'document:b' where id = '{second}'",
        "holdfast_runs set key_limit = 2 where id = '{second}'",
        "holdfast_runs set id = 'another' where id = '{second}'",
    ],
)
def test_no_change_to_a_lease_or_a_run_allows_a_second_lease_of_a_key(
    manual: Manual, database: Database, process: Any, change: str
) -> None:
    running, second, other = process.submit("a"), process.submit("a"), process.submit("b")
    assert [claim.lease.run_id for claim in manual.worker().claim(limit=1)] == [running.id]
    with pytest.raises(database.errors, match=REFUSED):
        database.run("update " + change.format(running=running.id, second=second.id, other=other.id))


@pytest.mark.contract("P2")
def test_the_changes_that_the_engine_makes_to_a_running_run_are_allowed(
    hf: Holdfast, manual: Manual, clock: FakeClock, process: Any
) -> None:
    """A renewal, a cancel, a concurrency permit and the end of the run do not change the key."""
    run = process.submit("a")
    worker = manual.worker()
    [claim] = worker.claim()
    worker.renew(claim)
    run.cancel()
    hf.queue("default", concurrency=3)
    worker.finish(claim)
    assert hf.verify() == []


@pytest.mark.contract("P2", "P10")
@pytest.mark.parametrize("change", ["run_key = null", "key_limit = 2, key_number = 2", "key_number = 2"])
def test_a_ready_run_changed_with_sql_waits_and_blocks_no_other(
    hf: Holdfast, manual: Manual, database: Database, clock: FakeClock, process: Any, change: str
) -> None:
    running = process.submit("a")
    [claim] = manual.worker().claim()
    second = process.submit("a")
    database.run(f"delete from holdfast_waits where run_id = '{second.id}'")
    database.run(
        "insert into holdfast_ready "
        "(run_id, job, queue, rank, run_key, claim, attempt, takeovers, key_limit, key_number) "
        f"select id, job, queue, 0, run_key, 0, 0, 0, 1, 1 from holdfast_runs where id = '{second.id}'"
    )
    database.run(f"update holdfast_ready set {change}")
    third = process.submit("b")

    other = manual.worker("b")
    assert [one.lease.run_id for one in other.claim(limit=5)] == [third.id]
    assert (hf.snapshot(running.id).state, hf.snapshot(second.id).place) == ("running", "waits")
    assert hf.snapshot(second.id).reason == "its row in ready had another key"

    manual.worker().finish(claim)
    clock.advance(2 * hf.settings.lease)
    manual.orchestrate()
    manual.run_all()
    assert second.refresh().state == "succeeded"
