"""Hot: the statements of every day, and values for each as a worker in the middle of things would give them."""

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
    "find_looks",
    "clear_looks",
    "find_open_holds",
    "find_turns",
    "take_holds",
    "give_holds",
    "open_holds",
    "delete_open_holds",
    "find_holders",
    "delete_waits",
    "lock_waits",
    "delete_ready",
    "find_needs_on",
    "find_met_needs_of",
    "find_needs_after",
    "delete_needs",
    "delete_needs_of",
    "subtract_needs",
    "pulse",
    "find_signs",
    "find_runs",
    "find_open",
    "find_outcomes",
    "find_idempotent",
    "find_holds",
    "count_waiting_before",
    "find_events",
    "find_steps",
    "find_artifact",
    "find_artifacts",
    "read_artifacts",
    "adopt_artifact",
    "delete_artifact",
    "delete_artifacts_of",
    "find_attempts",
    "find_root",
    "share_runs",
    "find_ended",
    "find_offspring",
    "lock_ended",
    "find_spared",
    "find_served",
    "count_belongings",
    "delete_events_of",
    "delete_old_events",
    "delete_slots_of",
    "find_active",
    "find_slots",
    "find_slot_of",
    "delete_uniques_of",
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
    "find_needs_of",
    "find_asks_of",
    "delete_asks",
    "set_must_succeed",
    "delete_asks_of",
    "set_needed",
    "find_expansions",
    "set_expansion",
    "find_segments",
    "share_segments",
    "find_segment_results",
    "count_stages",
    "find_progress",
    "find_troubles",
    "list_segments",
    "count_uses",
    "insert_stops",
    "find_open_children",
    "request_cancels",
    "find_child",
    "list_pipelines",
    "lock_bounds",
    "count_seats",
    "find_places",
    "find_placed",
    "find_key_leases",
    "lock_rates",
    "set_rates",
    "delete_idle_rates",
    "replace_uniques",
    "find_drain",
    "find_snapshots",
    "count_states",
    "find_all_events",
    "find_operations",
    "find_told_steps",
    "find_last_step",
    "find_marks",
    "lock_run",
    "find_kin",
    "find_last_events",
]


def run_id(number: int) -> str:
    return f"{number:026d}"


READY, WAITING, LEASED, ENDED = run_id(50_000), run_id(150_000), run_id(200_500), run_id(250_000)


def values(query: Query) -> dict[str, object]:
    """Something for each parameter, as a worker in the middle of things would give it."""
    row = {
        "run_id": LEASED,
        "attempt": 1,
        "expires_at": NOW + timedelta(seconds=15),
        "run_key": "k77",
        "needed": READY,
        "count": 1,
        "bad": 0,
        "number": 1,
        "opens": 1,
        "key_limit": 1,
        "wanted": 1,
        "job": "work",
        "idempotency_key": "i5",
        "scope": READY,
        "fingerprint": "f",
        "old_id": READY,
        "since_at": NOW,
        "id": LEASED,
        "parent_id": LEASED,
        "because": "it failed",
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
        "floor_rank": -2_000_000,
        "floor_id": "",
        "limit": 100,
        "rows": rows,
        "ids": [WAITING, LEASED],
        "holder": "w5",
        "now": NOW,
        "seen_before": NOW - timedelta(seconds=8),
        "expires_at": NOW + timedelta(seconds=15),
        "id": ENDED,
        "run_id": LEASED,
        "needed": READY,
        "key": "hot",
        "reason": "enough",
        "state": None,
        "tag": None,
        "job": None,
        "before": "~",
        "after": 0 if query.name in ("find_events", "find_all_events") else run_id(210_000),
        "place": ENDED,
        "name": "out.txt",
        "sha256": "x",
        "attempt": 1,
        "first": ENDED,
        "last": f"{ENDED}0",
        "behind": "",
        "since": NOW + timedelta(hours=60),
        "scope": READY,
        "fingerprint": "f",
        "because": None,
        "parent_id": run_id(400_001),
        "stage": "audio",
        "names": ["77", "78"],
        "errand": None,
        "count": 3,
        "spare": None,
    }
    if query.name in ("find_all_events", "find_told_steps", "count_states"):
        given |= {"tx": 0, "kinds": ["PROGRESS"], "budget": 10_000, "number": 0, "most": 10_001}
    if query.name in ("find_operations", "find_last_events"):
        given |= {"before": 2**62}
    if query.name == "find_progress":
        given |= {"ids": [run_id(400_001), run_id(400_002)]}
    if query.name == "find_troubles":
        given |= {"passed_on": "NEED_FAILED"}
    if query.name == "set_expansion":
        given |= {"first": 1}
    if query.name in ("find_ended", "delete_old_events", "delete_idle_rates"):
        given |= {"state": "succeeded", "before": NOW + timedelta(hours=70)}
    if query.name in ("get_build", "invalidate_build"):
        given |= {"job": "build"}
    if query.name == "find_slots":
        given |= {"job": "work", "before": NOW + timedelta(hours=2)}
    return {name: given[name] for name in query.parameters}
