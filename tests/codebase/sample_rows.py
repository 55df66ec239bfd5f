"""Sample rows: up to 300,000 in a table, the same on PostgreSQL and on SQLite.

{n} is a number as text, {id} the id made from it, {series} a table of the numbers.
"""

from __future__ import annotations

from holdfast import Policy

POLICY = Policy().to_json()
FILL: list[tuple[int, int, str]] = [
    (
        1,
        301_200,
        "insert into holdfast_runs (id, job, queue, priority, run_key, args, policy, tags, idempotency_key, again_of, "
        "created_at) "
        "select {id}, 'work', 'default', 0, case when {n} between 200201 and 201200 then 'l' || {n} end, "
        "'[]', '{policy}', '[]', "
        "case when {n} <= 1000 then 'i' || {n} end, null, {now}",
    ),
    (
        400_001,
        410_000,
        "insert into holdfast_runs (id, job, queue, priority, args, policy, tags, again_of, kind, created_at) "
        "select {id}, 'video', 'default', 0, '[]', '{policy}', '[]', 'again' || {n}, 'pipeline', {now}",
    ),
    (
        410_001,
        430_000,
        "insert into holdfast_runs "
        "(id, job, queue, priority, args, policy, tags, kind, parent_id, stage, segment, created_at) "
        "select {id}, 'video.audio', 'default', 0, '[]', '{policy}', '[]', 'segment', "
        "'00000000000000000000' || (400001 + {n} % 100), 'audio', 's' || {n}, {now}",
    ),
    (
        1,
        100_000,
        "insert into holdfast_ready {entry}) select {id}, 'work', 'default', -({n} % 100 / 99), null, 0, 0, 0",
    ),
    (
        100_001,
        130_000,
        "insert into holdfast_waits {entry}{waited}) select {id}, {waiting}, 'hot', 0, 0, 0, 0, null, '', 0, {now}",
    ),
    (
        130_001,
        170_000,
        "insert into holdfast_waits {entry}{waited}) "
        "select {id}, {waiting}, 'k' || ({n} % 10000), 0, 0, 0, 0, null, '', 0, {now}",
    ),
    (
        170_001,
        200_000,
        "insert into holdfast_waits {entry}{waited}) select {id}, {waiting}, null, 0, 0, 0, 0, {later}, '', 0, {now}",
    ),
    (
        200_001,
        200_200,
        "insert into holdfast_waits {entry}{waited}) "
        "select {id}, {waiting}, 'n' || {n}, 0, 0, 0, 0, null, '', 1, {now}",
    ),
    (
        200_201,
        201_200,
        "insert into holdfast_leases (run_id, job, queue, rank, run_key, claim, attempt, takeovers, holder, "
        "started_at, expires_at, deadline_at) "
        "select {id}, {waiting}, 'l' || {n}, 1, 1, 0, 'w' || ({n} % 10), {now}, {later}, {later}",
    ),
    (
        201_201,
        301_200,
        "insert into holdfast_outcomes select {id}, 'succeeded', null, null, 'null', 1, 1, 0, 'w1', {now}, {then}",
    ),
    (0, 9_999, "insert into holdfast_key_locks select 'k' || {n}, 1, 'held' || {n}"),
    (1, 50, "insert into holdfast_key_locks select 'open' || {n}, 1, null"),
    (1, 100_000, "insert into holdfast_dependencies select {id}, 'waiter' || {n}, 1"),
    (
        1,
        20_000,
        "insert into holdfast_events (run_id, kind, claim, data, happened_at) select {id}, 'LOG', 1, '[]', {now}",
    ),
    (
        20_001,
        40_000,
        "insert into holdfast_events (run_id, kind, claim, data, happened_at) select null, 'X', null, '[]', {now}",
    ),
    (
        1,
        50,
        "insert into holdfast_events (run_id, kind, data, happened_at) select null, 'OPERATOR_ACTION', '[]', {now}",
    ),
    (1, 20_000, "insert into holdfast_steps select {id}, 'one', '1', 1, 1, {now}, {now}, 0"),
    (1, 20_000, "insert into holdfast_artifacts select {id}, {id}, 'out.txt', 1, 1, 'x', {now}"),
    (1, 20_000, "insert into holdfast_unique_runs select 'work', {id}, {id}"),
    (1, 20_000, "insert into holdfast_builds select 'build', {id}, 'f', {id}, null, null, {now}"),
    (1, 20_000, "insert into holdfast_rates select {id}, 0, 1, {then}"),
    (1, 20_000, "insert into holdfast_rates select {id}, 1, 1, {now}"),
    (1, 20_000, "insert into holdfast_slots {slot} select 'work', {then}, 'missed', null, 0, {now}, 'w1'"),
    # Slots whose runs have ended, slots whose runs have a lease, and one whose run waits.
    (201_201, 301_200, "insert into holdfast_slots {slot} select 'feeds', {then}, 'claimed', {id}, 0, {then}, 'w1'"),
    (201_151, 201_155, "insert into holdfast_slots {slot} select 'feeds', {then}, 'claimed', {id}, 0, {then}, 'w1'"),
    (201_151, 201_155, "insert into holdfast_key_locks select 'schedule:feeds', {n}, {id}"),
    (301_201, 301_201, "insert into holdfast_slots {slot} select 'feeds', {then}, 'claimed', {id}, 0, {then}, 'w1'"),
    (
        301_201,
        301_201,
        "insert into holdfast_waits {entry}{waited}) "
        "select {id}, {waiting}, 'schedule:feeds', 0, 0, 0, 1, null, '', 0, {now}",
    ),
]


def filled(text: str, **words: str) -> str:
    columns = {
        "entry": "(run_id, job, queue, rank, run_key, claim, attempt, takeovers",
        "slot": "(job, slot_at, state, run_id, manual, claimed_at, claimed_by)",
        "waited": ", dependencies_left, due_at, reason, unchecked, entered_at",
    }
    return f"{text} from {{series}}".format(policy=POLICY, waiting="'work', 'default', 0", n="g", **columns, **words)
