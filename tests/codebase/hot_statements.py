"""Hot statements: the frequent statements, each with realistic values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from holdfast.store.queries import Query

NOW = datetime(2026, 6, 1, tzinfo=UTC)

HOT = [
    "take_ready",
    "take_oldest_ready",
    "delete_leases",
    "renew_leases",
    "guard_leases",
    "mark_expired",
    "find_expired",
    "delete_expired",
    "find_due",
    "come_due",
    "find_unchecked",
    "mark_checked",
    "find_open_key_locks",
    "find_turns",
    "take_key_locks",
    "hand_over_key_locks",
    "open_key_locks",
    "delete_open_key_locks",
    "find_key_holders",
    "delete_waits",
    "lock_waits",
    "delete_ready",
    "find_dependents",
    "find_met_dependencies_of",
    "find_dependencies_after",
    "delete_dependencies",
    "delete_dependencies_of",
    "subtract_dependencies",
    "pulse",
    "find_change_markers",
    "find_runs",
    "find_open",
    "find_outcomes",
    "find_idempotent",
    "find_key_locks",
    "count_waiting_before",
    "find_events",
    "find_steps",
    "find_artifact",
    "find_artifacts",
    "read_artifacts",
    "adopt_artifact",
    "delete_artifact",
    "delete_artifacts_of",
    "find_claims",
    "find_root",
    "share_runs",
    "find_ended",
    "find_descendants",
    "lock_ended",
    "find_still_referenced",
    "find_served",
    "count_related_rows",
    "delete_events_of",
    "delete_old_events",
    "delete_slots_of",
    "find_active",
    "find_slots",
    "find_slot_of",
    "delete_unique_runs_of",
    "delete_steps_of",
    "delete_outcomes",
    "delete_runs",
    "find_results",
    "find_builds",
    "replace_builds",
    "get_build",
    "list_builds",
    "invalidate_build",
    "delete_builds_of",
    "find_dependencies_of",
    "find_build_requests_of",
    "delete_build_requests",
    "set_must_succeed",
    "delete_build_requests_of",
    "set_depends_on",
    "find_expansions",
    "set_expansion",
    "find_segments",
    "share_segments",
    "find_segment_results",
    "count_stages",
    "find_progress",
    "find_stage_failures",
    "list_segments",
    "count_uses",
    "insert_child_cancellations",
    "find_open_children",
    "request_cancels",
    "find_child",
    "list_pipelines",
    "lock_bounds",
    "count_capacity",
    "find_permits",
    "find_permits_of",
    "find_key_leases",
    "lock_rates",
    "set_rates",
    "delete_idle_rates",
    "replace_unique_runs",
    "find_drain",
    "find_snapshots",
    "count_states",
    "find_all_events",
    "find_audit_entries",
    "find_steps_after",
    "find_last_step",
    "find_run_markers",
    "lock_run",
    "find_related_runs",
    "find_last_events",
]


def run_id(number: int) -> str:
    return f"{number:026d}"


READY, WAITING, LEASED, ENDED = run_id(50_000), run_id(150_000), run_id(200_500), run_id(250_000)


def values(query: Query) -> dict[str, object]:
    """A realistic value for each parameter of a statement."""
    row = {
        "run_id": LEASED,
        "claim": 1,
        "expires_at": NOW + timedelta(seconds=15),
        "run_key": "k77",
        "depends_on": READY,
        "count": 1,
        "bad": 0,
        "number": 1,
        "key_number": 1,
        "opens": 1,
        "key_limit": 1,
        "wanted": 1,
        "job": "work",
        "idempotency_key": "i5",
        "scope": READY,
        "fingerprint": "f",
        "old_id": READY,
        "entered_at": NOW,
        "created_at": NOW,
        "id": LEASED,
        "parent_id": LEASED,
        "reason": "it failed",
        "digest": "d",
        "name": "job:work",
        "turn": 1,
        "started_at": NOW,
    }
    rows = [row, row | {"run_id": WAITING, "run_key": "hot"}]
    given: dict[str, object] = {
        "queue": "default",
        "queues": ["default"],
        "jobs": ["work", "other"],
        "from_rank": -2_000_000,
        "from_id": "",
        "limit": 100,
        "rows": rows,
        "ids": [WAITING, LEASED],
        "holder": "w5",
        "now": NOW,
        "seen_before": NOW - timedelta(seconds=8),
        "expires_at": NOW + timedelta(seconds=15),
        "id": ENDED,
        "run_id": LEASED,
        "depends_on": READY,
        "key": "hot",
        "reason": "no longer needed",
        "state": None,
        "tag": None,
        "job": None,
        "before": "~",
        "after": 0 if query.name in ("find_events", "find_all_events") else run_id(210_000),
        "folder": ENDED,
        "name": "out.txt",
        "sha256": "x",
        "claim": 1,
        "first": ENDED,
        "last": f"{ENDED}0",
        "behind": "",
        "since": NOW + timedelta(hours=60),
        "scope": READY,
        "fingerprint": "f",
        "parent_id": run_id(400_001),
        "stage": "audio",
        "names": ["77", "78"],
        "pending_action": None,
        "count": 3,
        "failures_allowed": None,
    }
    if query.name in ("find_all_events", "find_steps_after", "count_states"):
        given |= {"tx": 0, "kinds": ["PROGRESS"], "budget": 10_000, "number": 0, "most": 10_001}
    if query.name in ("find_audit_entries", "find_last_events"):
        given |= {"before": 2**62}
    if query.name == "find_progress":
        given |= {"ids": [run_id(400_001), run_id(400_002)]}
    if query.name == "find_stage_failures":
        given |= {"passed_on": "DEPENDENCY_FAILED"}
    if query.name == "set_expansion":
        given |= {"first": 1}
    if query.name in ("find_ended", "delete_old_events", "delete_idle_rates"):
        given |= {"state": "succeeded", "before": NOW + timedelta(hours=70)}
    if query.name in ("get_build", "invalidate_build"):
        given |= {"job": "build"}
    if query.name == "find_slots":
        given |= {"job": "work", "before": NOW + timedelta(hours=2)}
    return {name: given[name] for name in query.parameters}
