"""Count rows, submit runs of a family, and write rows that refer to a run."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from holdfast import Holdfast, RunNotFound
from holdfast.runs.submission import Submission
from holdfast.runs.submit import submit_runs
from holdfast.values.policies import Policy

if TYPE_CHECKING:
    from tests.fixtures import Database

DAY = timedelta(days=1)
TABLES = ("runs", "outcomes", "events", "steps", "forgotten_steps", "artifacts", "unique_runs", "slots")


def rows(database: Database, *tables: str) -> dict[str, int]:
    return {table: database.count(table) for table in tables or TABLES}


def exists(hf: Holdfast, run_id: str) -> bool:
    try:
        hf.snapshot(run_id)
    except RunNotFound:
        return False
    return True


def a_run(hf: Holdfast, **options: Any) -> str:
    """Submit a run without arguments, with columns that only other parts of the engine set; return its id."""
    submission = Submission(
        run_id=hf.ids.new(hf.clock.now()),
        job="work",
        queue="default",
        priority=0,
        key=None,
        args="{}",
        policy=Policy(),
        **options,
    )
    [answer] = hf.do(lambda tx: submit_runs(tx, [submission]))
    assert isinstance(answer, str)
    return answer


REFERENCES = {
    "a dependency": "insert into holdfast_dependencies (depends_on, run_id, must_succeed) values ('{id}', 'x', 0)",
    "a build": "insert into holdfast_builds (job, scope, fingerprint, run_id, created_at) "
    "values ('b', 's', 'f', '{id}', '2026-01-01')",
    "a cancellation of children": "insert into holdfast_child_cancellations (parent_id, reason, created_at) "
    "values ('{id}', 'x', '2026-01-01')",
    "a slot above the watermark": "insert into holdfast_slots (job, slot_at, state, run_id, manual, claimed_at) "
    "values ('s', '2026-02-02', 'ran', '{id}', 0, '2026-01-01')",
}
