-- Children: runs submitted by a run, and the requests to stop them when their parent is cancelled.

-- name: find_child
-- A run that another one has submitted under this name.
select
    id,
    job
from holdfast_runs
where
    parent_id = :parent_id
    and stage = 'child'
    and segment = :name

-- name: find_open_children
-- Children of a run that have not ended and have not been asked to stop.
select r.id
from holdfast_runs as r
left join holdfast_outcomes as o on o.run_id = r.id
left join holdfast_leases as l on l.run_id = r.id
where
    r.parent_id = :parent_id
    and o.run_id is null
    and l.cancel_requested_at is null
order by r.id
limit :limit

-- name: insert_stops
-- These ended badly; those that have children are to take them along.
insert into holdfast_stops (
    parent_id,
    because,
    since_at
)
select
    r.parent_id,
    r.because,
    :now
from {rows: parent_id id, because text} as r
where exists (select 1 from holdfast_runs as c where c.parent_id = r.parent_id)
on conflict do nothing

-- name: insert_stops (sqlserver)
insert into holdfast_stops (
    parent_id,
    because,
    since_at
)
select
    r.parent_id,
    r.because,
    :now
from openjson(:rows) with (
    parent_id varchar(100),
    because nvarchar(max)
) as r
where
    exists (
        select 1
        from holdfast_runs as c
        where c.parent_id = r.parent_id collate latin1_general_100_bin2
    )
    and not exists (
        select 1
        from holdfast_stops as s
        where s.parent_id = r.parent_id collate latin1_general_100_bin2
    )

-- name: find_stops
-- Runs that ended badly and whose children are yet to be stopped.
select
    parent_id,
    because
from holdfast_stops {sqlserver: with (readpast, updlock, readcommittedlock)}
order by parent_id
limit :limit
{postgres: for update skip locked}

-- name: delete_stop
-- None of its children is left to be stopped.
delete from holdfast_stops
where parent_id = :parent_id
