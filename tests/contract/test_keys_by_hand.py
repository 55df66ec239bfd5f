"""The database itself keeps the limit of a key: whatever is written by hand, past our code, starts no second run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast import Holdfast
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.conftest import Database

COLUMNS = (
    "run_id, job, queue, rank, run_key, attempt, tries, takeovers, key_limit, number, holder, started_at, expires_at"
)
COPY = (
    f"insert into holdfast_leases ({COLUMNS}) select {{run_id}}, job, queue, rank, {{run_key}}, 1, 1, 0, "
    "{key_limit}, {number}, 'by hand', started_at, expires_at from holdfast_leases where run_id = '{running}'"
)


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
        {"number": "2"},
        {"number": "2", "key_limit": "2"},
        {"number": "0", "key_limit": "0"},
        {"run_key": "null"},
        {"run_key": "null", "number": "2", "key_limit": "2"},
        {"run_key": "'document:b'"},
        {"run_key": "''"},
        {"run_id": "'01m00000000000000000000000'", "run_key": "null"},
        {"run_id": "'01m00000000000000000000000'", "number": "2", "key_limit": "2"},
    ],
    ids=lambda forged: " ".join(f"{name}={value}" for name, value in forged.items()) or "as it is",
)
def test_no_copy_of_a_lease_starts_a_second_run(
    manual: Manual, database: Database, process: Any, forged: dict[str, str]
) -> None:
    running, second = process.submit("a"), process.submit("a")
    assert len(manual.worker().claim(limit=5)) == 1
    told = {"run_id": f"'{second.id}'", "run_key": "run_key", "key_limit": "key_limit", "number": "number"} | forged
    with pytest.raises(database.errors):
        database.run(COPY.format(running=running.id, **told))
    assert database.count("leases") == 1
    assert second.refresh().state == "queued"


@pytest.mark.contract("P2")
@pytest.mark.parametrize(
    "change", ["run_key = null", "run_key = 'document:b'", "number = 2", "key_limit = 2, number = 2"]
)
def test_no_change_of_a_lease_makes_room_for_a_second_one(
    manual: Manual, database: Database, process: Any, change: str
) -> None:
    running, _ = process.submit("a"), process.submit("a")
    manual.worker().claim()
    with pytest.raises(database.errors):
        database.run(f"update holdfast_leases set {change} where run_id = '{running.id}'")


@pytest.mark.contract("P2")
def test_a_lease_is_not_given_to_another_run(manual: Manual, database: Database, process: Any) -> None:
    _, other = process.submit("a"), process.submit("b")
    manual.worker().claim()
    with pytest.raises(database.errors):
        database.run(f"update holdfast_leases set run_id = '{other.id}'")


@pytest.mark.contract("P2")
@pytest.mark.parametrize("change", ["run_key = null", "run_key = 'document:b'", "key_limit = 2", "id = 'another'"])
def test_no_change_of_a_run_lets_it_start_beside_another(
    manual: Manual, database: Database, process: Any, change: str
) -> None:
    _, second = process.submit("a"), process.submit("a")
    manual.worker().claim()
    with pytest.raises(database.errors):
        database.run(f"update holdfast_runs set {change} where id = '{second.id}'")


@pytest.mark.contract("P2")
def test_what_the_engine_changes_of_a_running_run_is_not_refused(
    hf: Holdfast, manual: Manual, clock: FakeClock, process: Any
) -> None:
    """Renewals, a request to stop, the place in a queue, the end: none of them touches the key."""
    run = process.submit("a")
    worker = manual.worker()
    [claim] = worker.claim()
    worker.renew(claim)
    run.cancel()
    hf.queue("default", concurrency=3)
    worker.finish(claim)
    assert hf.verify() == []


@pytest.mark.contract("P2", "P10")
@pytest.mark.parametrize("change", ["run_key = null", "key_limit = 2, number = 2", "number = 2"])
def test_a_ready_run_that_was_changed_by_hand_waits_and_keeps_no_one_from_starting(
    hf: Holdfast, manual: Manual, database: Database, clock: FakeClock, process: Any, change: str
) -> None:
    running = process.submit("a")
    [claim] = manual.worker().claim()
    second = process.submit("a")
    database.run(f"delete from holdfast_waits where run_id = '{second.id}'")
    database.run(
        "insert into holdfast_ready (run_id, job, queue, rank, run_key, attempt, tries, takeovers, key_limit, number) "
        f"select id, job, queue, 0, run_key, 0, 0, 0, 1, 1 from holdfast_runs where id = '{second.id}'"
    )
    database.run(f"update holdfast_ready set {change}")
    third = process.submit("b")

    other = manual.worker("b")
    assert [one.lease.run_id for one in other.claim(limit=5)] == [third.id]
    assert (hf.snapshot(running.id).state, hf.snapshot(second.id).place) == ("running", "waits")
    assert hf.snapshot(second.id).because == "its row in ready had another key"

    manual.worker().finish(claim)
    clock.advance(2 * hf.settings.lease)
    manual.orchestrate()
    manual.run_all()
    assert second.refresh().state == "succeeded"
