"""Break the statements of retention one condition at a time: what would then be lost, a scenario misses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import psycopg
import pytest
from tests.contract.retaining import DAY, NAMED, a_run
from tests.contract.stage import Stage
from tests.listing import runs_of
from tests.mutants.statements import Mutant, Scenario, broken, each_mutant, each_scenario, on_both

from holdfast import UnknownNeed
from holdfast.artifacts import artifacts
from holdfast.runs import retention
from holdfast.runs.events import record
from holdfast.runs.retention import Cursor
from holdfast.values.events import Event


def ended(on: Stage, **options: Any) -> str:
    run = a_run(on.hf, **options)
    on.manual.run_all()
    return run


def execute(on: Stage, statement: str) -> None:
    on.hf.do(lambda tx: tx.execute_ddl(statement))


def stays(on: Stage, run_id: str) -> None:
    assert on.hf.do(lambda tx: retention.remove(tx, [run_id])) == 0
    assert on.hf.snapshot(run_id)


def one_that_has_not_ended_stays(on: Stage) -> None:
    stays(on, a_run(on.hf))


def an_audit_log_stays(on: Stage) -> None:
    run = on.submit(audit=True)
    on.manual.run_all()
    stays(on, run)


def named_by(who: str) -> Scenario:
    def scenario(on: Stage) -> None:
        run = ended(on)
        execute(
            on,
            "insert into holdfast_schedules (name, spec, considered_at, seen_at) "
            "values ('s', 'x', '2026-02-01', '2026-02-01')",
        )
        execute(on, NAMED[who].format(id=run))
        stays(on, run)

    scenario.__name__ = f"what_{who.replace(' ', '_')}_names_stays"
    return scenario


def a_slot_below_the_watermark_goes(on: Stage) -> None:
    run = ended(on)
    execute(
        on,
        "insert into holdfast_schedules (name, spec, considered_at, seen_at) "
        "values ('s', 'x', '2026-02-03', '2026-02-03')",
    )
    execute(on, NAMED["a slot above the watermark"].format(id=run))
    assert on.hf.do(lambda tx: retention.remove(tx, [run])) == 1


def a_pipeline_that_another_repeats_stays(on: Stage) -> None:
    run = ended(on, kind="pipeline")
    a_run(on.hf, kind="pipeline", again_of=run)
    stays(on, run)


def a_plain_run_that_another_repeats_goes(on: Stage) -> None:
    run = ended(on)
    a_run(on.hf, again_of=run)
    assert on.hf.do(lambda tx: retention.remove(tx, [run])) == 1


def a_page_has_what_ended_so_before_then(on: Stage) -> None:
    third = a_run(on.hf, due_at=on.clock.now() + DAY)  # submitted first, ended last
    first, second = ended(on), ended(on)
    on.clock.advance(DAY)
    on.manual.run_all()

    def page(cursor: Cursor, before: datetime, state: Any = "succeeded") -> list[str]:
        return [one.run_id for one in on.hf.read(lambda tx: retention.page(tx, state, cursor, before=before, limit=10))]

    soon = on.clock.now() + DAY
    at = on.hf.snapshot(first).finished_at
    assert at is not None
    assert page(Cursor(), soon) == [first, second, third]
    assert page(Cursor(), soon, "failed") == []
    assert page(Cursor(), on.clock.now()) == [first, second]
    assert page(Cursor(at, first), soon) == [second, third]
    assert page(Cursor(at, second), soon) == [third]


def removing_touches_no_other_run(on: Stage) -> None:
    run, other = ended(on), ended(on)
    now = on.clock.now()
    on.hf.do(lambda tx: record(tx, [Event(run_id=one, kind="LOG") for one in (run, other)]))
    for number, one in enumerate((run, other)):
        execute(on, f"insert into holdfast_steps values ('{one}', 's', '1', 1, 1, '{now}', '{now}', 1)")
        execute(on, f"insert into holdfast_forgotten values ('{one}', 's', 1, 1, '{now}', '{now}', 2)")
        execute(on, f"insert into holdfast_uniques values ('work', 'd{number}', '{one}')")
        execute(on, NAMED["a slot above the watermark"].format(id=one).replace("02-02", f"02-0{number + 1}"))
        execute(
            on,
            "insert into holdfast_artifacts (place, run_id, name, attempt, size, sha256, made_at) "
            f"values ('{one}', '{one}', 'out.txt', 1, 1, 'x', '{now}')",
        )
    on.hf.do(lambda tx: artifacts.remove(tx, on.hf._artifact_store, [run], limit=10))
    on.hf.do(lambda tx: retention.remove_events(tx, [run], limit=10))
    on.hf.do(lambda tx: retention.remove(tx, [run]))
    for table in ("runs", "outcomes", "events", "steps", "forgotten", "uniques", "slots", "artifacts"):
        assert count(on, table) == 1, table


def count(on: Stage, table: str) -> int:
    with on.hf.store.reading() as tx:
        found: int = tx._session.execute(f"select count(*) from holdfast_{table}", None)[0][0][0]
        return found


def events_of_runs_and_young_ones_stay(on: Stage) -> None:
    on.hf.do(lambda tx: record(tx, [Event(run_id=None, kind="LOG"), Event(run_id="some", kind="LOG")]))
    on.clock.advance(DAY)
    on.hf.do(lambda tx: record(tx, [Event(run_id=None, kind="LOG")]))
    assert on.hf.do(lambda tx: retention.remove_old_events(tx, before=on.clock.now(), limit=10)) == 1
    assert count(on, "events") == 2


def an_artifact_that_was_made_anew_since_it_was_checked_is_not_adopted(on: Stage) -> None:
    on.submit()
    claim = on.claim("a")
    seen = artifacts.keep(on.hf.store, on.hf._artifact_store, claim, "out.txt", b"old", part=None, max_bytes=9)
    artifacts.keep(on.hf.store, on.hf._artifact_store, claim, "out.txt", b"new", part=None, max_bytes=9)
    artifacts.keep(on.hf.store, on.hf._artifact_store, claim, "other.txt", b"old", part=None, max_bytes=9)
    other = replace(seen, name="none.txt")
    for found in (seen, other):
        assert on.hf.do(lambda tx, found=found: artifacts._adopt(tx, on.hf._artifact_store, claim.lease, found)) is None  # type: ignore[misc]


LIST = r"(?:in \(select value from json_each\(:ids\)\)|= any \(array\(select json_array_elements_text\(.*?\)\)\)\))"
IDS = rf"(?:\w+\.)?\w+ {LIST}"
MUTANTS = [
    Mutant("find_spared", r"o\.run_id is null", one_that_has_not_ended_stays, "1 = 0"),
    Mutant("find_spared", r"r\.audit = 1", an_audit_log_stays, "1 = 0"),
    Mutant("find_spared", r"n\.needed = r\.id", named_by("a need"), "1 = 0"),
    Mutant("find_spared", r"b\.run_id = r\.id", named_by("a build"), "1 = 0"),
    Mutant("find_spared", r"s\.parent_id = r\.id", named_by("children to be stopped"), "1 = 0"),
    Mutant("find_spared", r"t\.run_id = r\.id", named_by("a slot above the watermark"), "1 = 0"),
    Mutant("find_spared", r"t\.slot_at > c\.considered_at", a_slot_below_the_watermark_goes, "1 = 1"),
    Mutant("find_spared", r"a\.again_of = r\.id", a_pipeline_that_another_repeats_stays, "1 = 0"),
    Mutant("find_spared", r"a\.kind = 'pipeline'", a_plain_run_that_another_repeats_goes, "1 = 1"),
    Mutant("find_ended", r"o\.state = :state", a_page_has_what_ended_so_before_then, "(:state = :state)"),
    Mutant("find_ended", r"o\.finished_at < :before", a_page_has_what_ended_so_before_then, "(:before = :before)"),
    Mutant("find_ended", r"or o\.run_id > :after", a_page_has_what_ended_so_before_then, "or :after = ''"),
    Mutant("find_ended", r"o\.finished_at > :since or", a_page_has_what_ended_so_before_then, "1 = 0 or"),
    *[
        Mutant(f"delete_{what}", IDS, removing_touches_no_other_run, "(:ids = :ids)")
        for what in (
            "artifacts_of",
            "events_of",
            "steps_of",
            "forgotten_of",
            "uniques_of",
            "slots_of",
            "outcomes",
            "runs",
        )
    ],
    Mutant("delete_old_events", r"run_id is null", events_of_runs_and_young_ones_stay, "1 = 1"),
    Mutant("delete_old_events", r"happened_at < :before", events_of_runs_and_young_ones_stay, "(:before = :before)"),
    Mutant(
        "adopt_artifact",
        r"sha256 = :sha256",
        an_artifact_that_was_made_anew_since_it_was_checked_is_not_adopted,
        "(:sha256 = :sha256)",
    ),
    Mutant(
        "adopt_artifact",
        r"name = :name",
        an_artifact_that_was_made_anew_since_it_was_checked_is_not_adopted,
        "(:name = :name)",
    ),
]


@on_both
@pytest.mark.contract("P8", "L8")
@each_scenario(MUTANTS)
def test_the_statements_as_they_are_lose_nothing(scenario: Scenario, stage_of: Callable[..., Stage]) -> None:
    scenario(stage_of())


@pytest.mark.contract("P8", "L8")
@each_mutant(MUTANTS)
def test_a_condition_that_is_missing_is_missed(mutant: Mutant, dialect: str, stage_of: Callable[..., Stage]) -> None:
    mutant.is_noticed(dialect, stage_of)


@pytest.mark.contract("P8", "S2")
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
@pytest.mark.parametrize("locking", [True, False], ids=["as it is", "without the lock"])
def test_a_run_that_a_callers_open_transaction_begins_to_need_is_not_removed(
    url: str, stage_of: Callable[..., Stage], locking: bool
) -> None:
    """It would wait for ever for a run that is gone: that is what the lock is for."""
    on = stage_of(None if locking else broken("postgres", "share_runs", "for key share", ""))
    old = ended(on)
    on.clock.advance(31 * DAY)
    with psycopg.connect(url) as connection:
        waiting = on.job.using(connection=connection, after=[old]).submit()
        removed = on.hf.retain().runs
        connection.commit()
    assert removed == (0 if locking else 1)
    if locking:
        assert on.hf.retain().runs == 0, "now it is written down that it is needed"
        on.manual.run_all()
        assert waiting.refresh().state == "succeeded"
    else:
        on.manual.run_all()
        assert waiting.refresh().state == "queued"


@pytest.mark.contract("P8", "S4")
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_who_begins_to_need_a_run_while_it_is_removed_is_told_that_it_is_gone(
    url: str, stage_of: Callable[..., Stage]
) -> None:
    on = stage_of()
    old = ended(on)
    told: list[BaseException] = []

    def submit() -> None:
        try:
            on.job.using(after=[old]).submit()
        except UnknownNeed as error:
            told.append(error)

    submitter = threading.Thread(target=submit)
    with on.hf.store.transaction() as tx:
        assert retention.remove(tx, [old]) == 1
        submitter.start()
        submitter.join(timeout=0.3)
        assert submitter.is_alive(), "it waits to see what becomes of it"
    submitter.join(timeout=60)
    assert len(told) == 1
    assert runs_of(on.hf) == []
