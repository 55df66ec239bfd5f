"""Break the statements of retention, one condition at a time: a scenario must then fail."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import psycopg
import pytest
from tests.contract.helpers.retention import DAY, REFERENCES, a_run
from tests.contract.mutations.scenario_setup import ScenarioSetup
from tests.listing import runs_of
from tests.mutants.statements import Mutant, Scenario, broken, each_mutant, each_scenario, on_both

from holdfast import UnknownDependency
from holdfast.artifacts import artifacts
from holdfast.runs import retention
from holdfast.runs.events import record
from holdfast.runs.retention import Cursor
from holdfast.values.events import Event


def ended(on: ScenarioSetup, **options: Any) -> str:
    run = a_run(on.hf, **options)
    on.manual.run_all()
    return run


def execute(on: ScenarioSetup, statement: str) -> None:
    on.hf.do(lambda tx: tx.execute_ddl(statement))


def check_kept(on: ScenarioSetup, run_id: str) -> None:
    assert on.hf.do(lambda tx: retention.remove(tx, [run_id])) == 0
    assert on.hf.snapshot(run_id)


def a_run_that_has_not_ended_is_kept(on: ScenarioSetup) -> None:
    check_kept(on, a_run(on.hf))


def a_run_kept_forever_is_kept(on: ScenarioSetup) -> None:
    run = on.submit(keep_forever=True)
    on.manual.run_all()
    check_kept(on, run)


def referenced_by(reference: str) -> Scenario:
    def scenario(on: ScenarioSetup) -> None:
        run = ended(on)
        execute(
            on,
            "insert into holdfast_schedules (name, spec, evaluated_at, last_seen_at) "
            "values ('s', 'x', '2026-02-01', '2026-02-01')",
        )
        execute(on, REFERENCES[reference].format(id=run))
        check_kept(on, run)

    scenario.__name__ = f"a_run_referenced_by_{reference.replace(' ', '_')}_is_kept"
    return scenario


def a_slot_below_the_watermark_is_deleted(on: ScenarioSetup) -> None:
    run = ended(on)
    execute(
        on,
        "insert into holdfast_schedules (name, spec, evaluated_at, last_seen_at) "
        "values ('s', 'x', '2026-02-03', '2026-02-03')",
    )
    execute(on, REFERENCES["a slot above the watermark"].format(id=run))
    assert on.hf.do(lambda tx: retention.remove(tx, [run])) == 1


def a_pipeline_with_a_rerun_is_kept(on: ScenarioSetup) -> None:
    run = ended(on, kind="pipeline")
    a_run(on.hf, kind="pipeline", again_of=run)
    check_kept(on, run)


def a_plain_run_that_was_run_again_is_deleted(on: ScenarioSetup) -> None:
    run = ended(on)
    a_run(on.hf, again_of=run)
    assert on.hf.do(lambda tx: retention.remove(tx, [run])) == 1


def a_page_lists_the_runs_that_ended_before_an_instant(on: ScenarioSetup) -> None:
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


def deleting_a_run_keeps_all_others(on: ScenarioSetup) -> None:
    run, other = ended(on), ended(on)
    now = on.clock.now()
    on.hf.do(lambda tx: record(tx, [Event(run_id=one, kind="LOG") for one in (run, other)]))
    for number, one in enumerate((run, other)):
        execute(on, f"insert into holdfast_steps values ('{one}', 's', '1', 1, 1, '{now}', '{now}', 1)")
        execute(on, f"insert into holdfast_forgotten_steps values ('{one}', 's', 1, 1, '{now}', '{now}', 2)")
        execute(on, f"insert into holdfast_unique_runs values ('work', 'd{number}', '{one}')")
        execute(on, REFERENCES["a slot above the watermark"].format(id=one).replace("02-02", f"02-0{number + 1}"))
        execute(
            on,
            "insert into holdfast_artifacts (folder, run_id, name, claim, size, sha256, created_at) "
            f"values ('{one}', '{one}', 'out.txt', 1, 1, 'x', '{now}')",
        )
    on.hf.do(lambda tx: artifacts.remove(tx, on.hf._artifact_store, [run], limit=10))
    on.hf.do(lambda tx: retention.remove_events(tx, [run], limit=10))
    on.hf.do(lambda tx: retention.remove(tx, [run]))
    for table in ("runs", "outcomes", "events", "steps", "forgotten_steps", "unique_runs", "slots", "artifacts"):
        assert count(on, table) == 1, table


def count(on: ScenarioSetup, table: str) -> int:
    with on.hf.store.reading() as tx:
        found: int = tx._session.execute(f"select count(*) from holdfast_{table}", None)[0][0][0]
        return found


def events_of_runs_and_recent_events_are_kept(on: ScenarioSetup) -> None:
    on.hf.do(lambda tx: record(tx, [Event(run_id=None, kind="LOG"), Event(run_id="some", kind="LOG")]))
    on.clock.advance(DAY)
    on.hf.do(lambda tx: record(tx, [Event(run_id=None, kind="LOG")]))
    assert on.hf.do(lambda tx: retention.remove_old_events(tx, before=on.clock.now(), limit=10)) == 1
    assert count(on, "events") == 2


def an_artifact_replaced_since_its_check_is_not_adopted(on: ScenarioSetup) -> None:
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
    Mutant("find_still_referenced", r"o\.run_id is null", a_run_that_has_not_ended_is_kept, "1 = 0"),
    Mutant("find_still_referenced", r"r\.keep_forever = 1", a_run_kept_forever_is_kept, "1 = 0"),
    Mutant("find_still_referenced", r"n\.depends_on = r\.id", referenced_by("a dependency"), "1 = 0"),
    Mutant("find_still_referenced", r"b\.run_id = r\.id", referenced_by("a build"), "1 = 0"),
    Mutant("find_still_referenced", r"s\.parent_id = r\.id", referenced_by("a cancellation of children"), "1 = 0"),
    Mutant("find_still_referenced", r"t\.run_id = r\.id", referenced_by("a slot above the watermark"), "1 = 0"),
    Mutant("find_still_referenced", r"t\.slot_at > c\.evaluated_at", a_slot_below_the_watermark_is_deleted, "1 = 1"),
    Mutant("find_still_referenced", r"a\.again_of = r\.id", a_pipeline_with_a_rerun_is_kept, "1 = 0"),
    Mutant("find_still_referenced", r"a\.kind = 'pipeline'", a_plain_run_that_was_run_again_is_deleted, "1 = 1"),
    Mutant("find_ended", r"o\.state = :state", a_page_lists_the_runs_that_ended_before_an_instant, "(:state = :state)"),
    Mutant(
        "find_ended",
        r"o\.finished_at < :before",
        a_page_lists_the_runs_that_ended_before_an_instant,
        "(:before = :before)",
    ),
    Mutant(
        "find_ended", r"or o\.run_id > :after", a_page_lists_the_runs_that_ended_before_an_instant, "or :after = ''"
    ),
    Mutant("find_ended", r"o\.finished_at > :since or", a_page_lists_the_runs_that_ended_before_an_instant, "1 = 0 or"),
    *[
        Mutant(f"delete_{what}", IDS, deleting_a_run_keeps_all_others, "(:ids = :ids)")
        for what in (
            "artifacts_of",
            "events_of",
            "steps_of",
            "forgotten_steps_of",
            "unique_runs_of",
            "slots_of",
            "outcomes",
            "runs",
        )
    ],
    Mutant("delete_old_events", r"run_id is null", events_of_runs_and_recent_events_are_kept, "1 = 1"),
    Mutant(
        "delete_old_events", r"happened_at < :before", events_of_runs_and_recent_events_are_kept, "(:before = :before)"
    ),
    Mutant(
        "adopt_artifact",
        r"sha256 = :sha256",
        an_artifact_replaced_since_its_check_is_not_adopted,
        "(:sha256 = :sha256)",
    ),
    Mutant(
        "adopt_artifact",
        r"name = :name",
        an_artifact_replaced_since_its_check_is_not_adopted,
        "(:name = :name)",
    ),
]


@on_both
@pytest.mark.contract("P8", "L8")
@each_scenario(MUTANTS)
def test_unchanged_retention_statements_pass_every_scenario(
    scenario: Scenario, make_setup: Callable[..., ScenarioSetup]
) -> None:
    scenario(make_setup())


@pytest.mark.contract("P8", "L8")
@each_mutant(MUTANTS)
def test_a_retention_statement_without_its_condition_fails_a_scenario(
    mutant: Mutant, dialect: str, make_setup: Callable[..., ScenarioSetup]
) -> None:
    mutant.is_noticed(dialect, make_setup)


@pytest.mark.contract("P8", "S2")
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
@pytest.mark.parametrize("locking", [True, False], ids=["with the lock", "without the lock"])
def test_a_run_that_an_open_transaction_depends_on_is_not_deleted(
    url: str, make_setup: Callable[..., ScenarioSetup], locking: bool
) -> None:
    """Without the lock, the run in the open transaction would wait for ever for a deleted run."""
    on = make_setup(None if locking else broken("postgres", "share_runs", "for key share", ""))
    old = ended(on)
    on.clock.advance(31 * DAY)
    with psycopg.connect(url) as connection:
        waiting = on.job.using(connection=connection, depends_on=[old]).submit()
        removed = on.hf.prune().runs
        connection.commit()
    assert removed == (0 if locking else 1)
    if locking:
        assert on.hf.prune().runs == 0, "now the dependency is stored"
        on.manual.run_all()
        assert waiting.refresh().state == "succeeded"
    else:
        on.manual.run_all()
        assert waiting.refresh().state == "queued"


@pytest.mark.contract("P8", "S4")
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_depending_on_a_run_while_it_is_deleted_fails_with_not_found(
    url: str, make_setup: Callable[..., ScenarioSetup]
) -> None:
    on = make_setup()
    old = ended(on)
    errors: list[BaseException] = []

    def submit() -> None:
        try:
            on.job.using(depends_on=[old]).submit()
        except UnknownDependency as error:
            errors.append(error)

    submitter = threading.Thread(target=submit)
    with on.hf.store.transaction() as tx:
        assert retention.remove(tx, [old]) == 1
        submitter.start()
        submitter.join(timeout=0.3)
        assert submitter.is_alive(), "the submission must wait for the deletion"
    submitter.join(timeout=60)
    assert len(errors) == 1
    assert runs_of(on.hf) == []
