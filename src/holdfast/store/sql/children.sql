-- Children: runs submitted by another run, and the requests to cancel them when their parent does not succeed.

-- name: find_child
-- Find the child that a run has submitted under this name.
select
    id,
    job
from holdfast_runs
where
    parent_id = :parent_id
    and stage = 'child'
    and segment = :name

-- name: find_open_children
-- Find children of a run that have not ended and have not been asked to stop.
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

-- name: insert_child_cancellations
-- Request that the children of these runs, which did not succeed, are cancelled.
insert into holdfast_child_cancellations (
    parent_id,
    reason,
    created_at
)
select
    r.parent_id,
    r.reason,
    :now
from {rows: parent_id id, reason text} as r
where exists (select 1 from holdfast_runs as c where c.parent_id = r.parent_id)
on conflict do nothing

-- name: insert_child_cancellations (sqlserver)
insert into holdfast_child_cancellations (
    parent_id,
    reason,
    created_at
)
select
    r.parent_id,
    r.reason,
    :now
from openjson(:rows) with (
    parent_id varchar(100),
    reason nvarchar(max)
) as r
where
    exists (
        select 1
        from holdfast_runs as c
        where c.parent_id = r.parent_id collate latin1_general_100_bin2
    )
    and not exists (
        select 1
        from holdfast_child_cancellations as s
        where s.parent_id = r.parent_id collate latin1_general_100_bin2
    )

-- name: find_child_cancellations
-- Find runs whose children are still to be cancelled.
select
    parent_id,
    reason
from holdfast_child_cancellations {sqlserver: with (readpast, updlock, readcommittedlock)}
order by parent_id
limit :limit
{postgres: for update skip locked}

-- name: delete_child_cancellation
-- Delete a request: no child is left to cancel.
delete from holdfast_child_cancellations
where parent_id = :parent_id
