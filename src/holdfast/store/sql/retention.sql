-- Retention: which finished runs may be deleted, and deleting them with everything that belongs to them.

-- name: find_ended
-- A page of runs that ended like this before then, the oldest first.
select
    o.run_id,
    o.finished_at,
    r.audit,
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

-- name: find_spared
-- Those of these runs that can't go: not ended, an audit log, or named by someone.
select r.id
from holdfast_runs as r
left join holdfast_outcomes as o on o.run_id = r.id
where
    r.id in {ids}
    and (
        o.run_id is null
        or r.audit = 1
        or exists (select 1 from holdfast_needs as n where n.needed = r.id)
        or exists (select 1 from holdfast_builds as b where b.run_id = r.id and b.stale_at is null and o.state = 'succeeded')
        or exists (select 1 from holdfast_stops as s where s.parent_id = r.id)
        or exists (select 1 from holdfast_runs as a where a.again_of = r.id and a.again_of is not null and a.kind = 'pipeline')
        or exists (select 1 from holdfast_runs as a where a.again_of = r.parent_id and a.again_of is not null and a.kind = 'pipeline')
        or exists (
            select 1
            from holdfast_slots as t
            inner join holdfast_schedules as c on c.name = t.job
            where t.run_id = r.id and t.slot_at > c.considered_at
        )
    )

-- name: find_served
-- Those of these runs that made a build which was good until then or later: it was called stale, or made anew.
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

-- name: find_offspring (sqlite)
-- What these runs have made others do: stages, segments, children; and how that stands.
select
    r.id,
    r.parent_id,
    r.audit,
    o.state,
    o.finished_at
from holdfast_runs as r
left join holdfast_outcomes as o on o.run_id = r.id
where r.parent_id in {ids}

-- name: find_offspring (postgres)
-- What these runs have made others do: stages, segments, children; and how that ended. The outcomes are looked up one
-- by one: joined, the whole of their table may be read for one large family.
select
    r.id,
    r.parent_id,
    r.audit,
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

-- name: find_offspring (sqlserver)
select
    r.id,
    r.parent_id,
    r.audit,
    o.state,
    o.finished_at
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as r on r.parent_id = k.id collate latin1_general_100_bin2
left join holdfast_outcomes as o on o.run_id = r.id
where r.parent_id is not null

-- name: count_belongings
-- How much belongs to these runs.
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
-- Hold these runs' submissions still: no one can begin to need one of them before this transaction ends.
select id
from holdfast_runs
where id in {ids}
{postgres: order by id for update skip locked}

-- name: lock_ended (sqlserver)
-- Hold these runs' submissions still, by writing them as they are: no one can begin to need one of them before this
-- transaction ends.
update r
set audit = r.audit
output inserted.id
from (
    select q.id
    from openjson(:ids) with (id varchar(100) '$') as k
    inner join holdfast_runs as q with (readpast, updlock, readcommittedlock)
        on q.id = k.id collate latin1_general_100_bin2
) as chosen
inner join holdfast_runs as r with (rowlock) on r.id = chosen.id
{seek}

-- name: open_gate
-- From now on and until it is closed, this transaction may delete outcomes.
insert into holdfast_gates (id)
values (:id)

-- name: close_gate
-- No one may delete outcomes.
delete from holdfast_gates
where id = :id

-- name: delete_outcomes
-- How these runs ended is no longer kept; refused unless the gate is open.
delete from holdfast_outcomes
where run_id in {ids}

-- name: delete_runs
-- These runs are no longer kept.
delete from holdfast_runs
where id in {ids}

-- name: delete_events_of (sqlite)
-- Some of what happened to these runs is no longer kept.
delete from holdfast_events
where id in (
    select id
    from holdfast_events
    where run_id in {ids}
    limit :limit
)

-- name: delete_events_of (postgres)
-- An array, not a join: its plan doesn't change with the number of events.
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
-- What these runs remembered is no longer kept.
delete from holdfast_steps
where run_id in {ids}

-- name: delete_forgotten_of
-- What these runs have forgotten is no longer kept, either.
delete from holdfast_forgotten
where run_id in {ids}

-- name: delete_builds_of
-- What these runs made, or failed to make, is no build any more.
delete from holdfast_builds
where run_id in {ids}

-- name: delete_slots_of
-- The slots that these runs had are no longer kept.
delete from holdfast_slots
where run_id in {ids}

-- name: delete_uniques_of
-- These runs are no longer the last of their kind.
delete from holdfast_uniques
where run_id in {ids}

-- name: delete_old_events (sqlite)
-- The oldest events of no run in particular are no longer kept.
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
-- `order by run_id, id` is the order of an index; by id alone, PostgreSQL reads the primary key from its start.
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
