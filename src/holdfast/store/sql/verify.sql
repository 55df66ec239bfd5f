-- Verify: find rows that break a rule.

-- name: verify
-- Find all inconsistencies in one statement, so that all are read from one snapshot.
with places as (
    select run_id, 'waits' as place from holdfast_waits
    union all
    select run_id, 'ready' as place from holdfast_ready
    union all
    select run_id, 'leases' as place from holdfast_leases
    union all
    select run_id, 'outcomes' as place from holdfast_outcomes
),

counted as (
    select
        run_id,
        count(*) as places,
        min(place) as first_place,
        max(place) as last_place
    from places
    group by run_id
)

select
    'nowhere' as problem,
    r.id as run_id,
    'the run is in none of waits, ready, leases and outcomes' as detail
from holdfast_runs as r
left join counted as c on c.run_id = r.id
where c.run_id is null

union all

select
    'in_two_places' as problem,
    run_id,
    'the run is in ' || first_place || ' and in ' || last_place as detail
from counted
where places > 1

union all

select
    'never_submitted' as problem,
    c.run_id,
    'there is no such run, but it is in ' || c.first_place as detail
from counted as c
left join holdfast_runs as r on r.id = c.run_id
where r.id is null

union all

select
    'run_without_key_lock' as problem,
    p.run_id,
    'the run is ready or running, but does not have the key lock of ' || p.run_key as detail
from (
    select run_id, run_key, key_number from holdfast_ready where run_key is not null
    union all
    select run_id, run_key, key_number from holdfast_leases where run_key is not null
) as p
left join holdfast_key_locks as h on h.run_key = p.run_key and h.key_number = p.key_number
where h.run_id is null or h.run_id <> p.run_id

union all

select
    'key_lock_without_run' as problem,
    h.run_id,
    'the key lock of ' || h.run_key || ' belongs to a run that has ended or does not exist' as detail
from holdfast_key_locks as h
left join places as p on p.run_id = h.run_id and p.place <> 'outcomes'
where h.run_id is not null and p.run_id is null

union all

select
    'lease_outlived' as problem,
    run_id,
    'its lease expired long ago, and no orchestrator has recovered it' as detail
from holdfast_leases
where expires_at < :late_at

union all

select
    'dependencies_miscounted' as problem,
    w.run_id,
    'its number of open dependencies is not the number of its dependency rows' as detail
from holdfast_waits as w
where
    -- While the segments of a stage are being created, its count is not final.
    (w.pending_action is null or w.pending_action = 'expand')
    and w.dependencies_left <> (select count(*) from holdfast_dependencies as n where n.run_id = w.run_id)
    + (select count(*) from holdfast_build_requests as a where a.run_id = w.run_id)

union all

select
    'dependency_without_wait' as problem,
    n.run_id,
    'the run depends on ' || n.depends_on || ', but does not wait' as detail
from holdfast_dependencies as n
left join holdfast_waits as w on w.run_id = n.run_id
where w.run_id is null

union all

select
    'build_request_without_wait' as problem,
    a.run_id,
    'the run has a build request for ' || a.job || ', but does not wait, or no orchestrator will check it' as detail
from holdfast_build_requests as a
left join holdfast_waits as w on w.run_id = a.run_id and w.unchecked = 1
where w.run_id is null

union all

select
    'build_without_run' as problem,
    b.run_id,
    'the build of ' || b.job || ' refers to a run that does not exist' as detail
from holdfast_builds as b
left join holdfast_runs as r on r.id = b.run_id
where r.id is null

union all

select
    'artifact_without_run' as problem,
    a.run_id,
    'the artifact ' || a.name || ' belongs to a run that does not exist' as detail
from holdfast_artifacts as a
left join holdfast_runs as r on r.id = a.run_id
where r.id is null

union all

select
    'gate_left_open' as problem,
    g.id as run_id,
    'a row in retention_gate lets anyone delete outcomes, and must be deleted' as detail
from holdfast_retention_gate as g

union all

select
    'wait_forgotten' as problem,
    w.run_id,
    'the run waits for nothing, its key is free, and no orchestrator will check it' as detail
from holdfast_waits as w
where
    w.unchecked = 0
    and w.dependencies_left = 0
    and w.due_at is null
    and w.pending_action is null
    and (
        w.run_key is null
        or w.key_limit > (
            select count(*)
            from holdfast_key_locks as h
            where h.run_key = w.run_key and h.key_number <= w.key_limit
        )
    )

union all

select
    'slot_without_run' as problem,
    coalesce(s.run_id, '') as run_id,
    'slot ' || cast(s.slot_at as text) || ' of ' || s.job || ' is claimed for a run that does not exist' as detail
from holdfast_slots as s
left join holdfast_runs as r on r.id = s.run_id
where s.state = 'claimed' and r.id is null

union all

select
    'run_without_slot' as problem,
    r.id as run_id,
    'the run was submitted for a slot of ' || r.job || ', but no slot refers to it' as detail
from holdfast_runs as r
left join holdfast_slots as s on s.run_id = r.id and s.run_id is not null
where r.kind = 'slot' and s.run_id is null

union all

select
    'slot_into_nothing' as problem,
    '' as run_id,
    'slot ' || cast(s.slot_at as text) || ' of ' || s.job || ' is coalesced into ' || cast(s.coalesced_at as text) || ', which is not a slot' as detail
from holdfast_slots as s
left join holdfast_slots as i on i.job = s.job and i.slot_at = s.coalesced_at
where s.coalesced_at is not null and i.job is null

union all

select
    'capacity_without_run' as problem,
    s.run_id,
    'the run counts against the capacity of queue ' || s.queue || ', but it has ended or does not exist' as detail
from holdfast_queue_capacity as s
left join places as p on p.run_id = s.run_id and p.place <> 'outcomes'
where p.run_id is null

union all

select
    'run_without_capacity' as problem,
    r.id as run_id,
    'queue ' || r.queue || ' or all queues are bounded, but the run is not counted' as detail
from places as p
inner join holdfast_runs as r on r.id = p.run_id
left join holdfast_queue_capacity as s on s.run_id = r.id
where
    p.place <> 'outcomes'
    and s.run_id is null
    and coalesce(r.kind, '') <> 'build'
    and exists (
        select 1
        from holdfast_queues as q
        where
            (q.name = r.queue or q.name = '*')
            and q.max_queued is not null
            and q.counted_at < r.created_at
    )

union all

select
    'child_without_parent' as problem,
    r.id as run_id,
    'the run has not ended, but its parent ' || r.parent_id || ' does not exist' as detail
from holdfast_runs as r
left join holdfast_runs as p on p.id = r.parent_id
left join holdfast_outcomes as o on o.run_id = r.id
where r.parent_id is not null and p.id is null and o.run_id is null

union all

select
    'child_cancellation_without_ending' as problem,
    s.parent_id as run_id,
    'its children are to be cancelled, but it has not failed or been cancelled' as detail
from holdfast_child_cancellations as s
left join holdfast_outcomes as o on o.run_id = s.parent_id and o.state <> 'succeeded'
where o.run_id is null

union all

select
    'stage_left_behind' as problem,
    r.id as run_id,
    'its pipeline ' || r.parent_id || ' has ended, but no orchestrator will cancel the run' as detail
from places as p
inner join holdfast_runs as r on r.id = p.run_id
inner join holdfast_outcomes as o on o.run_id = r.parent_id
left join holdfast_child_cancellations as s on s.parent_id = r.parent_id
left join holdfast_leases as l on l.run_id = r.id
where
    p.place <> 'outcomes'
    and r.kind in ('stage', 'segment')
    and s.parent_id is null
    and l.cancel_requested_at is null

-- name: verify (sqlserver)
-- Find all inconsistencies in one statement. Here it may read from several snapshots, so the caller runs it twice.
with places as (
    select run_id, 'waits' as place from holdfast_waits
    union all
    select run_id, 'ready' as place from holdfast_ready
    union all
    select run_id, 'leases' as place from holdfast_leases
    union all
    select run_id, 'outcomes' as place from holdfast_outcomes
),

counted as (
    select
        run_id,
        count(*) as places,
        min(place) as first_place,
        max(place) as last_place
    from places
    group by run_id
)

select
    'nowhere' as problem,
    r.id as run_id,
    cast('the run is in none of waits, ready, leases and outcomes' as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_runs as r
left join counted as c on c.run_id = r.id
where c.run_id is null

union all

select
    'in_two_places' as problem,
    run_id,
    cast(concat('the run is in ', first_place, ' and in ', last_place) as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from counted
where places > 1

union all

select
    'never_submitted' as problem,
    c.run_id,
    cast(concat('there is no such run, but it is in ', c.first_place) as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from counted as c
left join holdfast_runs as r on r.id = c.run_id
where r.id is null

union all

select
    'run_without_key_lock' as problem,
    p.run_id,
    cast(concat('the run is ready or running, but does not have the key lock of ', p.run_key) as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from (
    select run_id, run_key, key_number from holdfast_ready where run_key is not null
    union all
    select run_id, run_key, key_number from holdfast_leases where run_key is not null
) as p
left join holdfast_key_locks as h on h.run_key = p.run_key and h.key_number = p.key_number
where h.run_id is null or h.run_id <> p.run_id

union all

select
    'key_lock_without_run' as problem,
    h.run_id,
    cast(concat('the key lock of ', h.run_key, ' belongs to a run that has ended or does not exist') as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_key_locks as h
left join places as p on p.run_id = h.run_id and p.place <> 'outcomes'
where h.run_id is not null and p.run_id is null

union all

select
    'lease_outlived' as problem,
    run_id,
    cast('its lease expired long ago, and no orchestrator has recovered it' as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_leases
where expires_at < :late_at

union all

select
    'dependencies_miscounted' as problem,
    w.run_id,
    cast('its number of open dependencies is not the number of its dependency rows' as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_waits as w
where
    -- While the segments of a stage are being created, its count is not final.
    (w.pending_action is null or w.pending_action = 'expand')
    and w.dependencies_left <> (select count(*) from holdfast_dependencies as n where n.run_id = w.run_id)
    + (select count(*) from holdfast_build_requests as a where a.run_id = w.run_id)

union all

select
    'dependency_without_wait' as problem,
    n.run_id,
    cast(concat('the run depends on ', n.depends_on, ', but does not wait') as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_dependencies as n
left join holdfast_waits as w on w.run_id = n.run_id
where w.run_id is null

union all

select
    'build_request_without_wait' as problem,
    a.run_id,
    'the run has a build request for ' + a.job + ', but does not wait, or no orchestrator will check it' as detail
from holdfast_build_requests as a
left join holdfast_waits as w on w.run_id = a.run_id and w.unchecked = 1
where w.run_id is null

union all

select
    'build_without_run' as problem,
    b.run_id,
    'the build of ' + b.job + ' refers to a run that does not exist' as detail
from holdfast_builds as b
left join holdfast_runs as r on r.id = b.run_id
where r.id is null

union all

select
    'artifact_without_run' as problem,
    a.run_id,
    'the artifact ' + a.name + ' belongs to a run that does not exist' as detail
from holdfast_artifacts as a
left join holdfast_runs as r on r.id = a.run_id
where r.id is null

union all

select
    'gate_left_open' as problem,
    g.id as run_id,
    'a row in retention_gate lets anyone delete outcomes, and must be deleted' as detail
from holdfast_retention_gate as g

union all

select
    'wait_forgotten' as problem,
    w.run_id,
    cast('the run waits for nothing, its key is free, and no orchestrator will check it' as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_waits as w
where
    w.unchecked = 0
    and w.dependencies_left = 0
    and w.due_at is null
    and w.pending_action is null
    and (
        w.run_key is null
        or w.key_limit > (
            select count(*)
            from holdfast_key_locks as h
            where h.run_key = w.run_key and h.key_number <= w.key_limit
        )
    )

union all

select
    'slot_without_run' as problem,
    coalesce(s.run_id, '') as run_id,
    'slot ' + convert(nvarchar(40), s.slot_at, 126) + ' of ' + s.job + ' is claimed for a run that does not exist' as detail
from holdfast_slots as s
left join holdfast_runs as r on r.id = s.run_id
where s.state = 'claimed' and r.id is null

union all

select
    'run_without_slot' as problem,
    r.id as run_id,
    'the run was submitted for a slot of ' + r.job + ', but no slot refers to it' as detail
from holdfast_runs as r
left join holdfast_slots as s on s.run_id = r.id and s.run_id is not null
where r.kind = 'slot' and s.run_id is null

union all

select
    'slot_into_nothing' as problem,
    '' as run_id,
    'slot ' + convert(nvarchar(40), s.slot_at, 126) + ' of ' + s.job + ' is coalesced into ' + convert(nvarchar(40), s.coalesced_at, 126) + ', which is not a slot' as detail
from holdfast_slots as s
left join holdfast_slots as i on i.job = s.job and i.slot_at = s.coalesced_at
where s.coalesced_at is not null and i.job is null

union all

select
    'capacity_without_run' as problem,
    s.run_id,
    'the run counts against the capacity of queue ' + s.queue + ', but it has ended or does not exist' as detail
from holdfast_queue_capacity as s
left join places as p on p.run_id = s.run_id and p.place <> 'outcomes'
where p.run_id is null

union all

select
    'run_without_capacity' as problem,
    r.id as run_id,
    'queue ' + r.queue + ' or all queues are bounded, but the run is not counted' as detail
from places as p
inner join holdfast_runs as r on r.id = p.run_id
left join holdfast_queue_capacity as s on s.run_id = r.id
where
    p.place <> 'outcomes'
    and s.run_id is null
    and coalesce(r.kind, '') <> 'build'
    and exists (
        select 1
        from holdfast_queues as q
        where
            (q.name = r.queue or q.name = '*')
            and q.max_queued is not null
            and q.counted_at < r.created_at
    )

union all

select
    'child_without_parent' as problem,
    r.id as run_id,
    cast(concat('the run has not ended, but its parent ', r.parent_id, ' does not exist') as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_runs as r
left join holdfast_runs as p on p.id = r.parent_id
left join holdfast_outcomes as o on o.run_id = r.id
where r.parent_id is not null and p.id is null and o.run_id is null

union all

select
    'child_cancellation_without_ending' as problem,
    s.parent_id as run_id,
    cast('its children are to be cancelled, but it has not failed or been cancelled' as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_child_cancellations as s
left join holdfast_outcomes as o on o.run_id = s.parent_id and o.state <> 'succeeded'
where o.run_id is null

union all

select
    'stage_left_behind' as problem,
    r.id as run_id,
    cast(concat('its pipeline ', r.parent_id, ' has ended, but no orchestrator will cancel the run') as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from places as p
inner join holdfast_runs as r on r.id = p.run_id
inner join holdfast_outcomes as o on o.run_id = r.parent_id
left join holdfast_child_cancellations as s on s.parent_id = r.parent_id
left join holdfast_leases as l on l.run_id = r.id
where
    p.place <> 'outcomes'
    and r.kind in ('stage', 'segment')
    and s.parent_id is null
    and l.cancel_requested_at is null
