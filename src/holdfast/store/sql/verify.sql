-- Verify: the rows that break a rule.

-- name: verify
-- What must never be. One statement, one snapshot.
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
    'the run is in no place' as detail
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
    'key_without_turn' as problem,
    p.run_id,
    'it is ready or runs, but the hold on ' || p.run_key || ' is not its own' as detail
from (
    select run_id, run_key, number from holdfast_ready where run_key is not null
    union all
    select run_id, run_key, number from holdfast_leases where run_key is not null
) as p
left join holdfast_holds as h on h.run_key = p.run_key and h.number = p.number
where h.run_id is null or h.run_id <> p.run_id

union all

select
    'turn_without_run' as problem,
    h.run_id,
    'the hold on ' || h.run_key || ' belongs to a run that has ended or does not exist' as detail
from holdfast_holds as h
left join places as p on p.run_id = h.run_id and p.place <> 'outcomes'
where h.run_id is not null and p.run_id is null

union all

select
    'lease_outlived' as problem,
    run_id,
    'its lease ran out long ago and no orchestrator took it away' as detail
from holdfast_leases
where expires_at < :late_at

union all

select
    'needs_miscounted' as problem,
    w.run_id,
    'it waits for another number of runs than its needs say' as detail
from holdfast_waits as w
where
    -- While its segments are being made, a stage's count is not one yet.
    (w.errand is null or w.errand = 'expand')
    and w.missing <> (select count(*) from holdfast_needs as n where n.run_id = w.run_id)
    + (select count(*) from holdfast_asks as a where a.run_id = w.run_id)

union all

select
    'need_without_wait' as problem,
    n.run_id,
    'it needs ' || n.needed || ' but does not wait' as detail
from holdfast_needs as n
left join holdfast_waits as w on w.run_id = n.run_id
where w.run_id is null

union all

select
    'ask_without_wait' as problem,
    a.run_id,
    'it asks for a build of ' || a.job || ' but does not wait, or no orchestrator is to look at it' as detail
from holdfast_asks as a
left join holdfast_waits as w on w.run_id = a.run_id and w.look = 1
where w.run_id is null

union all

select
    'build_without_run' as problem,
    b.run_id,
    'the build of ' || b.job || ' names a run that does not exist' as detail
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
    'a row in gates lets anyone delete outcomes and must be removed' as detail
from holdfast_gates as g

union all

select
    'wait_forgotten' as problem,
    w.run_id,
    'it waits for nothing, no one holds its key, and no orchestrator is to look at it' as detail
from holdfast_waits as w
where
    w.look = 0
    and w.missing = 0
    and w.due_at is null
    and w.errand is null
    and (
        w.run_key is null
        or w.key_limit > (
            select count(*)
            from holdfast_holds as h
            where h.run_key = w.run_key and h.number <= w.key_limit
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
    'it was submitted for a slot of ' || r.job || ' that is not its own' as detail
from holdfast_runs as r
left join holdfast_slots as s on s.run_id = r.id and s.run_id is not null
where r.kind = 'slot' and s.run_id is null

union all

select
    'slot_into_nothing' as problem,
    '' as run_id,
    'slot ' || cast(s.slot_at as text) || ' of ' || s.job || ' is coalesced into ' || cast(s.into_at as text) || ', which is no slot' as detail
from holdfast_slots as s
left join holdfast_slots as i on i.job = s.job and i.slot_at = s.into_at
where s.into_at is not null and i.job is null

union all

select
    'seat_without_run' as problem,
    s.run_id,
    'it has a seat in queue ' || s.queue || ', but has ended or does not exist' as detail
from holdfast_seats as s
left join places as p on p.run_id = s.run_id and p.place <> 'outcomes'
where p.run_id is null

union all

select
    'run_without_seat' as problem,
    r.id as run_id,
    'queue ' || r.queue || ' or all queues are bounded, but it has no seat' as detail
from places as p
inner join holdfast_runs as r on r.id = p.run_id
left join holdfast_seats as s on s.run_id = r.id
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
    'child_of_no_one' as problem,
    r.id as run_id,
    'it has not ended, and run ' || r.parent_id || ', to which it belongs, does not exist' as detail
from holdfast_runs as r
left join holdfast_runs as p on p.id = r.parent_id
left join holdfast_outcomes as o on o.run_id = r.id
where r.parent_id is not null and p.id is null and o.run_id is null

union all

select
    'stop_without_ending' as problem,
    s.parent_id as run_id,
    'its children are to be stopped, but it has not ended badly' as detail
from holdfast_stops as s
left join holdfast_outcomes as o on o.run_id = s.parent_id and o.state <> 'succeeded'
where o.run_id is null

union all

select
    'stage_left_behind' as problem,
    r.id as run_id,
    'its pipeline ' || r.parent_id || ' has ended, and no one is to stop it' as detail
from places as p
inner join holdfast_runs as r on r.id = p.run_id
inner join holdfast_outcomes as o on o.run_id = r.parent_id
left join holdfast_stops as s on s.parent_id = r.parent_id
left join holdfast_leases as l on l.run_id = r.id
where
    p.place <> 'outcomes'
    and r.kind in ('stage', 'segment')
    and s.parent_id is null
    and l.cancel_requested_at is null

-- name: verify (sqlserver)
-- What must never be. One statement; where it is not one snapshot too, whoever asks looks twice.
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
    cast('the run is in no place' as nvarchar(1000)) collate latin1_general_100_bin2 as detail
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
    'key_without_turn' as problem,
    p.run_id,
    cast(concat('it is ready or runs, but the hold on ', p.run_key, ' is not its own') as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from (
    select run_id, run_key, number from holdfast_ready where run_key is not null
    union all
    select run_id, run_key, number from holdfast_leases where run_key is not null
) as p
left join holdfast_holds as h on h.run_key = p.run_key and h.number = p.number
where h.run_id is null or h.run_id <> p.run_id

union all

select
    'turn_without_run' as problem,
    h.run_id,
    cast(concat('the hold on ', h.run_key, ' belongs to a run that has ended or does not exist') as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_holds as h
left join places as p on p.run_id = h.run_id and p.place <> 'outcomes'
where h.run_id is not null and p.run_id is null

union all

select
    'lease_outlived' as problem,
    run_id,
    cast('its lease ran out long ago and no orchestrator took it away' as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_leases
where expires_at < :late_at

union all

select
    'needs_miscounted' as problem,
    w.run_id,
    cast('it waits for another number of runs than its needs say' as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_waits as w
where
    -- While its segments are being made, a stage's count is not one yet.
    (w.errand is null or w.errand = 'expand')
    and w.missing <> (select count(*) from holdfast_needs as n where n.run_id = w.run_id)
    + (select count(*) from holdfast_asks as a where a.run_id = w.run_id)

union all

select
    'need_without_wait' as problem,
    n.run_id,
    cast(concat('it needs ', n.needed, ' but does not wait') as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_needs as n
left join holdfast_waits as w on w.run_id = n.run_id
where w.run_id is null

union all

select
    'ask_without_wait' as problem,
    a.run_id,
    'it asks for a build of ' + a.job + ' but does not wait, or no orchestrator is to look at it' as detail
from holdfast_asks as a
left join holdfast_waits as w on w.run_id = a.run_id and w.look = 1
where w.run_id is null

union all

select
    'build_without_run' as problem,
    b.run_id,
    'the build of ' + b.job + ' names a run that does not exist' as detail
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
    'a row in gates lets anyone delete outcomes and must be removed' as detail
from holdfast_gates as g

union all

select
    'wait_forgotten' as problem,
    w.run_id,
    cast('it waits for nothing, no one holds its key, and no orchestrator is to look at it' as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_waits as w
where
    w.look = 0
    and w.missing = 0
    and w.due_at is null
    and w.errand is null
    and (
        w.run_key is null
        or w.key_limit > (
            select count(*)
            from holdfast_holds as h
            where h.run_key = w.run_key and h.number <= w.key_limit
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
    'it was submitted for a slot of ' + r.job + ' that is not its own' as detail
from holdfast_runs as r
left join holdfast_slots as s on s.run_id = r.id and s.run_id is not null
where r.kind = 'slot' and s.run_id is null

union all

select
    'slot_into_nothing' as problem,
    '' as run_id,
    'slot ' + convert(nvarchar(40), s.slot_at, 126) + ' of ' + s.job + ' is coalesced into ' + convert(nvarchar(40), s.into_at, 126) + ', which is no slot' as detail
from holdfast_slots as s
left join holdfast_slots as i on i.job = s.job and i.slot_at = s.into_at
where s.into_at is not null and i.job is null

union all

select
    'seat_without_run' as problem,
    s.run_id,
    'it has a seat in queue ' + s.queue + ', but has ended or does not exist' as detail
from holdfast_seats as s
left join places as p on p.run_id = s.run_id and p.place <> 'outcomes'
where p.run_id is null

union all

select
    'run_without_seat' as problem,
    r.id as run_id,
    'queue ' + r.queue + ' or all queues are bounded, but it has no seat' as detail
from places as p
inner join holdfast_runs as r on r.id = p.run_id
left join holdfast_seats as s on s.run_id = r.id
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
    'child_of_no_one' as problem,
    r.id as run_id,
    cast(concat('it has not ended, and run ', r.parent_id, ', to which it belongs, does not exist') as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_runs as r
left join holdfast_runs as p on p.id = r.parent_id
left join holdfast_outcomes as o on o.run_id = r.id
where r.parent_id is not null and p.id is null and o.run_id is null

union all

select
    'stop_without_ending' as problem,
    s.parent_id as run_id,
    cast('its children are to be stopped, but it has not ended badly' as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from holdfast_stops as s
left join holdfast_outcomes as o on o.run_id = s.parent_id and o.state <> 'succeeded'
where o.run_id is null

union all

select
    'stage_left_behind' as problem,
    r.id as run_id,
    cast(concat('its pipeline ', r.parent_id, ' has ended, and no one is to stop it') as nvarchar(1000)) collate latin1_general_100_bin2 as detail
from places as p
inner join holdfast_runs as r on r.id = p.run_id
inner join holdfast_outcomes as o on o.run_id = r.parent_id
left join holdfast_stops as s on s.parent_id = r.parent_id
left join holdfast_leases as l on l.run_id = r.id
where
    p.place <> 'outcomes'
    and r.kind in ('stage', 'segment')
    and s.parent_id is null
    and l.cancel_requested_at is null
