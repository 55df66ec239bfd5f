-- Retention: find finished runs that may be deleted, and delete them with everything that belongs to them.

-- name: find_ended
-- Read a page of runs that ended in a given state before a given time, the oldest first.
select
    o.run_id,
    o.finished_at,
    r.keep_forever,
    r.parent_id
from holdfast_outcomes as o
inner join holdfast_runs as r on r.id = o.run_id
where
    o.state = :state
    and o.finished_at >= :since
    and o.finished_at < :before
    and (o.finished_at > :since or o.run_id > :after)
order by o.finished_at, o.run_id
limit :limit

-- name: find_still_referenced
-- Find which of these runs can't be deleted: not ended, kept for ever, or referred to by another row.
select r.id
from holdfast_runs as r
left join holdfast_outcomes as o on o.run_id = r.id
where
    r.id in {ids}
    and (
        o.run_id is null
        or r.keep_forever = 1
        or exists (select 1 from holdfast_dependencies as n where n.depends_on = r.id)
        or exists (select 1 from holdfast_builds as b where b.run_id = r.id and b.stale_at is null and o.state = 'succeeded')
        or exists (select 1 from holdfast_child_cancellations as s where s.parent_id = r.id)
        or exists (select 1 from holdfast_runs as a where a.again_of = r.id and a.again_of is not null and a.kind = 'pipeline')
        or exists (select 1 from holdfast_runs as a where a.again_of = r.parent_id and a.again_of is not null and a.kind = 'pipeline')
        or exists (
            select 1
            from holdfast_slots as t
            inner join holdfast_schedules as c on c.name = t.job
            where t.run_id = r.id and t.slot_at > c.evaluated_at
        )
    )

-- name: find_served
-- Find which of these runs made a build that became stale, or was made again, at a given time or later.
select r.id
from holdfast_runs as r
where
    r.id in {ids}
    and (
        exists (select 1 from holdfast_builds as b where b.run_id = r.id and b.stale_at >= :since)
        or exists (
            select 1
            from holdfast_runs as a
            where a.again_of = r.id and a.again_of is not null and a.kind = 'build' and a.created_at >= :since
        )
    )

-- name: find_descendants (sqlite)
-- Find the stages, segments and children of these runs, and their states.
select
    r.id,
    r.parent_id,
    r.keep_forever,
    o.state,
    o.finished_at
from holdfast_runs as r
left join holdfast_outcomes as o on o.run_id = r.id
where r.parent_id in {ids}

-- name: find_descendants (postgres)
-- Find the stages, segments and children of these runs, and how they ended. The outcomes are looked up one by one: with a
-- join, the whole table may be read for one run with many children.
select
    r.id,
    r.parent_id,
    r.keep_forever,
    o.state,
    o.finished_at
from holdfast_runs as r
left join lateral (
    select
        state,
        finished_at
    from holdfast_outcomes
    where run_id = r.id
    limit 1
) as o on true
where r.parent_id in {ids}

-- name: find_descendants (sqlserver)
select
    r.id,
    r.parent_id,
    r.keep_forever,
    o.state,
    o.finished_at
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as r on r.parent_id = k.id collate latin1_general_100_bin2
left join holdfast_outcomes as o on o.run_id = r.id
where r.parent_id is not null

-- name: count_related_rows
-- Count the rows that belong to these runs.
select
    (
        select count(*)
        from holdfast_events
        where run_id in {ids}
    ) as events,
    count(*) as artifacts,
    cast(coalesce(sum(size), 0) as bigint) as bytes
from holdfast_artifacts
where run_id in {ids}

-- name: lock_ended
-- Lock these runs: no new run can depend on one of them before this transaction ends.
select id
from holdfast_runs
where id in {ids}
{postgres: order by id for update skip locked}

-- name: lock_ended (sqlserver)
-- Lock these runs, by an update that changes nothing: no new run can depend on one of them before this transaction ends.
update r
set keep_forever = r.keep_forever
output inserted.id
from (
    select q.id
    from openjson(:ids) with (id varchar(100) '$') as k
    inner join holdfast_runs as q with (readpast, updlock, readcommittedlock)
        on q.id = k.id collate latin1_general_100_bin2
) as chosen
inner join holdfast_runs as r with (rowlock) on r.id = chosen.id
{seek}

-- name: open_retention_gate
-- Open the gate: until it is closed, this transaction may delete outcomes.
insert into holdfast_retention_gate (id)
values (:id)

-- name: close_retention_gate
-- Close the gate: outcomes can't be deleted any more.
delete from holdfast_retention_gate
where id = :id

-- name: delete_outcomes
-- Delete the outcomes of these runs; refused unless the gate is open.
delete from holdfast_outcomes
where run_id in {ids}

-- name: delete_runs
-- Delete these runs.
delete from holdfast_runs
where id in {ids}

-- name: delete_events_of (sqlite)
-- Delete some events of these runs.
delete from holdfast_events
where id in (
    select id
    from holdfast_events
    where run_id in {ids}
    limit :limit
)

-- name: delete_events_of (postgres)
-- Use an array, not a join: then the plan does not change with the number of events.
delete from holdfast_events
where id = any (array(
    select id
    from holdfast_events
    where run_id in {ids}
    limit :limit
))

-- name: delete_events_of (sqlserver)
delete top (:limit) e
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_events as e with (rowlock) on e.run_id = k.id collate latin1_general_100_bin2
{seek}

-- name: delete_steps_of
-- Delete the stored steps of these runs.
delete from holdfast_steps
where run_id in {ids}

-- name: delete_forgotten_steps_of
-- Delete the forgotten steps of these runs.
delete from holdfast_forgotten_steps
where run_id in {ids}

-- name: delete_builds_of
-- Delete the builds of these runs.
delete from holdfast_builds
where run_id in {ids}

-- name: delete_slots_of
-- Delete the slots of these runs.
delete from holdfast_slots
where run_id in {ids}

-- name: delete_unique_runs_of
-- Delete the unique entries of these runs.
delete from holdfast_unique_runs
where run_id in {ids}

-- name: delete_old_events (sqlite)
-- Delete the oldest events that belong to no run.
delete from holdfast_events
where
    id in (
        select id
        from holdfast_events
        where run_id is null
        order by id
        limit :limit
    )
    and happened_at < :before

-- name: delete_old_events (postgres)
-- `order by run_id, id` matches an index. With `order by id` alone, PostgreSQL would read the primary key from its start.
delete from holdfast_events
where
    id = any (array(
        select id
        from holdfast_events
        where run_id is null
        order by run_id, id
        limit :limit
    ))
    and happened_at < :before

-- name: delete_old_events (sqlserver)
delete e
from (
    select top (:limit) d.id
    from holdfast_events as d with (readpast, readcommittedlock)
    where d.run_id is null
    order by d.id
) as chosen
inner join holdfast_events as e with (rowlock) on e.id = chosen.id
where e.happened_at < :before
{seek}
