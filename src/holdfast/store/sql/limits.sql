-- Limits of a job: rates (how many runs may start in a period) and unique runs.

-- name: insert_rates (sqlite)
-- Rows of a rate that no one has used yet.
insert into holdfast_rates (name, number, turn)
select
    value ->> 'name',
    value ->> 'number',
    0
from json_each(:rows)
where true
on conflict do nothing

-- name: insert_rates (postgres)
insert into holdfast_rates (name, number, turn)
select
    name,
    number,
    0
from json_to_recordset(cast(:rows as json)) as r (name text, number integer)
order by name, number
on conflict do nothing

-- name: insert_rates (sqlserver)
insert into holdfast_rates (name, number, turn)
select
    r.name,
    r.number,
    0
from openjson(:rows) with (name nvarchar(1000), number int) as r
where not exists (
    select 1
    from holdfast_rates as o
    where o.name = r.name collate latin1_general_100_bin2 and o.number = r.number
)
order by r.name, r.number

-- name: lock_rates (sqlite)
-- The rows of these rates; the writer's lock holds them still.
select
    name,
    number,
    turn,
    started_at
from holdfast_rates
where name in (select value from json_each(:names))
order by name, number

-- name: lock_rates (postgres)
-- The rows of these rates, held still: one claim at a time judges by them.
select
    name,
    number,
    turn,
    started_at
from holdfast_rates
where name = any (array(select json_array_elements_text(cast(:names as json))))
order by name, number
for update

-- name: lock_rates (sqlserver)
-- The rows of these rates, held still: one claim at a time judges by them. Written as they are, they are held still
-- where a lock hint means nothing.
update r
set turn = r.turn
output inserted.name, inserted.number, inserted.turn, inserted.started_at
from openjson(:names) with (name nvarchar(1000) '$') as n
inner join holdfast_rates as r with (rowlock) on r.name = n.name collate latin1_general_100_bin2
option (force order, loop join)

-- name: set_rates (sqlite)
-- What was started, and the turns that were given.
update holdfast_rates
set
    turn = r.value ->> 'turn',
    started_at = r.value ->> 'started_at'
from json_each(:rows) as r
where holdfast_rates.name = r.value ->> 'name' and holdfast_rates.number = r.value ->> 'number'

-- name: set_rates (postgres)
update holdfast_rates as o
set
    turn = r.turn,
    started_at = r.started_at
from json_to_recordset(cast(:rows as json)) as r (name text, number integer, turn bigint, started_at timestamptz)
where o.name = r.name and o.number = r.number

-- name: set_rates (sqlserver)
update o
set
    turn = r.turn,
    started_at = r.started_at
from openjson(:rows) with (name nvarchar(1000), number int, turn bigint, started_at datetime2(6)) as r
inner join holdfast_rates as o with (rowlock)
    on
        o.name = r.name collate latin1_general_100_bin2
        and o.number = r.number
option (force order, loop join)

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
option (force order, loop join)

-- name: insert_uniques (sqlite)
-- Be the only run of a kind; where there has been one, the row is left out.
insert into holdfast_uniques (job, digest, run_id)
select
    value ->> 'job',
    value ->> 'digest',
    value ->> 'run_id'
from json_each(:rows)
where true
on conflict do nothing
returning run_id

-- name: insert_uniques (postgres)
insert into holdfast_uniques (job, digest, run_id)
select
    job,
    digest,
    run_id
from json_to_recordset(cast(:rows as json)) as r (job text, digest text, run_id text)
order by job, digest
on conflict do nothing
returning run_id

-- name: insert_uniques (sqlserver)
insert into holdfast_uniques (job, digest, run_id)
output inserted.run_id
select
    r.job,
    r.digest,
    r.run_id
from openjson(:rows) with (job nvarchar(1000), digest varchar(200), run_id varchar(100)) as r
where not exists (
    select 1
    from holdfast_uniques as u
    where
        u.job = r.job collate latin1_general_100_bin2
        and u.digest = r.digest collate latin1_general_100_bin2
)
order by r.job, r.digest

-- name: find_uniques (sqlite)
-- Who was last submitted as the only run of its kind, and whether it is still queued or runs.
select
    u.job,
    u.digest,
    u.run_id,
    case
        when w.run_id is not null or y.run_id is not null then 'queued'
        when l.run_id is not null then 'running'
    end as place
from json_each(:rows) as r
inner join holdfast_uniques as u on u.job = r.value ->> 'job' and u.digest = r.value ->> 'digest'
left join holdfast_waits as w on w.run_id = u.run_id
left join holdfast_ready as y on y.run_id = u.run_id
left join holdfast_leases as l on l.run_id = u.run_id

-- name: find_uniques (postgres)
select
    u.job,
    u.digest,
    u.run_id,
    case
        when w.run_id is not null or y.run_id is not null then 'queued'
        when l.run_id is not null then 'running'
    end as place
from json_to_recordset(cast(:rows as json)) as r (job text, digest text)
inner join holdfast_uniques as u on u.job = r.job and u.digest = r.digest
left join holdfast_waits as w on w.run_id = u.run_id
left join holdfast_ready as y on y.run_id = u.run_id
left join holdfast_leases as l on l.run_id = u.run_id

-- name: find_uniques (sqlserver)
select
    u.job,
    u.digest,
    u.run_id,
    case
        when w.run_id is not null or y.run_id is not null then 'queued'
        when l.run_id is not null then 'running'
    end as place
from openjson(:rows) with (job nvarchar(1000), digest varchar(200)) as r
inner join holdfast_uniques as u
    on
        u.job = r.job collate latin1_general_100_bin2
        and u.digest = r.digest collate latin1_general_100_bin2
left join holdfast_waits as w on w.run_id = u.run_id
left join holdfast_ready as y on y.run_id = u.run_id
left join holdfast_leases as l on l.run_id = u.run_id

-- name: replace_uniques (sqlite)
-- Take over from runs that are no longer in the way, if they are still the ones that were seen.
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
option (force order, loop join)
