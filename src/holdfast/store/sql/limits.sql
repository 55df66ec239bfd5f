-- Limits of a job: rates (how many runs may start in a period) and unique runs.

-- name: insert_rates
-- Rows of a rate that no one has used yet.
{insert holdfast_rates: name name, number int, turn = 0; unless name, number}

-- name: lock_rates
-- The rows of these rates, held still: one claim at a time judges by them.
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
-- The rows of these rates, held still: one claim at a time judges by them. Written as they are, they are held still
-- where a lock hint means nothing.
update r
set turn = r.turn
output inserted.name, inserted.number, inserted.turn, inserted.started_at
from openjson(:names) with (name nvarchar(1000) '$') as n
inner join holdfast_rates as r with (rowlock) on r.name = n.name collate latin1_general_100_bin2
{seek}

-- name: set_rates
-- What was started, and the turns that were given.
update holdfast_rates as o
set
    turn = r.turn,
    started_at = r.started_at
from {rows: name name, number int, turn bigint, started_at time} as r
where o.name = r.name and o.number = r.number

-- name: delete_idle_rates (sqlite)
-- Rates that no one uses any more. Who holds row 0 still has all rows of its rate.
delete from holdfast_rates
where name in (
    select name
    from holdfast_rates
    where number = 0 and started_at < :before
    order by started_at
    limit :limit
)

-- name: delete_idle_rates (postgres)
-- Chosen in a CTE: PostgreSQL may evaluate a subquery of `in` again, and lock more rows than `limit` says.
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

-- name: insert_uniques
-- Be the only run of a kind; where there has been one, the row is left out.
{insert holdfast_uniques: job name, digest code, run_id id; unless job, digest; returning run_id}

-- name: find_uniques
-- Who was last submitted as the only run of its kind, and whether it is still queued or runs.
select
    u.job,
    u.digest,
    u.run_id,
    case
        when w.run_id is not null or y.run_id is not null then 'queued'
        when l.run_id is not null then 'running'
    end as place
from {rows: job name, digest code} as r
inner join holdfast_uniques as u on u.job = r.job and u.digest = r.digest
left join holdfast_waits as w on w.run_id = u.run_id
left join holdfast_ready as y on y.run_id = u.run_id
left join holdfast_leases as l on l.run_id = u.run_id

-- name: replace_uniques (sqlite)
-- Take over from runs that are no longer in the way, if they are still the ones that were seen.
-- SQLite 3.40 knows no alias in `returning`.
update holdfast_uniques
set run_id = r.value ->> 'run_id'
from json_each(:rows) as r
where
    holdfast_uniques.job = r.value ->> 'job'
    and holdfast_uniques.digest = r.value ->> 'digest'
    and holdfast_uniques.run_id = r.value ->> 'old_id'
returning holdfast_uniques.run_id

-- name: replace_uniques (postgres)
update holdfast_uniques as u
set run_id = r.run_id
from json_to_recordset(cast(:rows as json)) as r (job text, digest text, run_id text, old_id text)
where u.job = r.job and u.digest = r.digest and u.run_id = r.old_id
returning u.run_id

-- name: replace_uniques (sqlserver)
update u
set run_id = r.run_id
output inserted.run_id
from openjson(:rows) with (job nvarchar(1000), digest varchar(200), run_id varchar(100), old_id varchar(100)) as r
inner join holdfast_uniques as u with (rowlock)
    on
        u.job = r.job collate latin1_general_100_bin2
        and u.digest = r.digest collate latin1_general_100_bin2
where u.run_id = r.old_id collate latin1_general_100_bin2
{seek}
