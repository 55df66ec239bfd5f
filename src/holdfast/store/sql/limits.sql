-- Limits of a job: rates (how many runs may start in a period) and unique runs.

-- name: insert_rates
-- Create the rows of rates that are used for the first time.
{insert holdfast_rates: name name, number int, turn = 0; unless name, number}

-- name: lock_rates
-- Read the rows of these rates and lock them, so that only one claim at a time uses a rate.
select
    name,
    number,
    turn,
    started_at
from holdfast_rates
where name in {names}
order by name, number
{postgres: for update}

-- name: lock_rates (sqlserver)
-- Read the rows of these rates and lock them, so that only one claim at a time uses a rate. The update changes nothing;
-- it locks even where a lock hint has no effect.
update r
set turn = r.turn
output inserted.name, inserted.number, inserted.turn, inserted.started_at
from openjson(:names) with (name nvarchar(1000) '$') as n
inner join holdfast_rates as r with (rowlock) on r.name = n.name collate latin1_general_100_bin2
{seek}

-- name: set_rates
-- Record the starts of a rate, and the turns that were given to waiting runs.
update holdfast_rates as o
set
    turn = r.turn,
    started_at = r.started_at
from {rows: name name, number int, turn bigint, started_at time} as r
where o.name = r.name and o.number = r.number

-- name: delete_idle_rates (sqlite)
-- Delete rates that are no longer used. A lock on row 0 protects all rows of a rate.
delete from holdfast_rates
where name in (
    select name
    from holdfast_rates
    where number = 0 and started_at < :before
    order by started_at
    limit :limit
)

-- name: delete_idle_rates (postgres)
-- Choose the rows in a CTE: PostgreSQL may evaluate a subquery of `in` several times and lock more rows than `limit`.
with idle as (
    select name
    from holdfast_rates
    where number = 0 and started_at < :before
    order by started_at
    limit :limit
    for update skip locked
)

delete from holdfast_rates as r
using idle
where r.name = idle.name

-- name: delete_idle_rates (sqlserver)
delete r
from (
    select top (:limit) i.name
    from holdfast_rates as i with (updlock, readpast, readcommittedlock)
    where i.number = 0 and i.started_at < :before
    order by i.started_at
) as idle
inner join holdfast_rates as r with (rowlock) on r.name = idle.name
{seek}

-- name: insert_unique_runs
-- Register unique runs, except those whose key or arguments another run has registered.
{insert holdfast_unique_runs: job name, digest code, run_id id; unless job, digest; returning run_id}

-- name: find_unique_runs
-- Find the run that was last registered as unique, and whether it is still queued or running.
select
    u.job,
    u.digest,
    u.run_id,
    case
        when w.run_id is not null or y.run_id is not null then 'queued'
        when l.run_id is not null then 'running'
    end as state
from {rows: job name, digest code} as r
inner join holdfast_unique_runs as u on u.job = r.job and u.digest = r.digest
left join holdfast_waits as w on w.run_id = u.run_id
left join holdfast_ready as y on y.run_id = u.run_id
left join holdfast_leases as l on l.run_id = u.run_id

-- name: replace_unique_runs (sqlite)
-- Replace unique runs that no longer block new ones, if they have not changed since they were read.
-- SQLite 3.40 does not support an alias in `returning`.
update holdfast_unique_runs
set run_id = r.value ->> 'run_id'
from json_each(:rows) as r
where
    holdfast_unique_runs.job = r.value ->> 'job'
    and holdfast_unique_runs.digest = r.value ->> 'digest'
    and holdfast_unique_runs.run_id = r.value ->> 'old_id'
returning holdfast_unique_runs.run_id

-- name: replace_unique_runs (postgres)
update holdfast_unique_runs as u
set run_id = r.run_id
from json_to_recordset(cast(:rows as json)) as r (job text, digest text, run_id text, old_id text)
where u.job = r.job and u.digest = r.digest and u.run_id = r.old_id
returning u.run_id

-- name: replace_unique_runs (sqlserver)
update u
set run_id = r.run_id
output inserted.run_id
from openjson(:rows) with (job nvarchar(1000), digest varchar(200), run_id varchar(100), old_id varchar(100)) as r
inner join holdfast_unique_runs as u with (rowlock)
    on
        u.job = r.job collate latin1_general_100_bin2
        and u.digest = r.digest collate latin1_general_100_bin2
where u.run_id = r.old_id collate latin1_general_100_bin2
{seek}
