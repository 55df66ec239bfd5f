-- Dependencies ("needs"): which runs must end before another one starts, and how many of them are still open.

-- name: insert_needs
-- What runs need to have ended.
{insert holdfast_needs: needed id, run_id id, must_succeed int}

-- name: insert_new_needs
-- What runs need to have ended, where they do not need it already.
{insert holdfast_needs: needed id, run_id id, must_succeed int; unless needed, run_id; returning needed, run_id}

-- name: subtract_needs (sqlite)
-- So many needs fewer, and so many of them ended badly; who needs nothing more is to be looked at.
-- SQLite 3.40 knows no alias in `returning`.
update holdfast_waits
set
    missing = missing - (r.value ->> 'count'),
    spare = spare - (r.value ->> 'bad'),
    look = case when missing <= (r.value ->> 'count') then 1 else look end
from json_each(:rows) as r
where holdfast_waits.run_id = r.value ->> 'run_id'
returning run_id, run_key, missing, due_at, spare, errand

-- name: subtract_needs (postgres)
update holdfast_waits as w
set
    missing = w.missing - r.count,
    spare = w.spare - r.bad,
    look = case when w.missing <= r.count then 1 else w.look end
from json_to_recordset(cast(:rows as json)) as r (run_id text, count integer, bad integer)
where w.run_id = r.run_id
returning w.run_id, w.run_key, w.missing, w.due_at, w.spare, w.errand

-- name: subtract_needs (sqlserver)
update w
set
    missing = w.missing - r.[count],
    spare = w.spare - r.bad,
    look = case when w.missing <= r.[count] then 1 else w.look end
output
    inserted.run_id,
    inserted.run_key,
    inserted.missing,
    inserted.due_at,
    inserted.spare,
    inserted.errand
from openjson(:rows) with (run_id varchar(100), [count] int, bad int) as r
inner join holdfast_waits as w with (rowlock) on w.run_id = r.run_id collate latin1_general_100_bin2
{seek}

-- name: set_needed
-- Which runs these ones need, now that their builds are known.
update holdfast_runs as r
set needed = k.needed
from {rows: id id, needed text} as k
where r.id = k.id

-- name: set_must_succeed
-- These needs must end well, though it was first said that they need not.
update holdfast_needs as n
set must_succeed = 1
from {rows: needed id, run_id id} as r
where n.needed = r.needed and n.run_id = r.run_id and n.must_succeed = 0

-- name: find_needs_of
-- What a run still needs; the first of it.
select
    n.needed,
    v.job,
    v.kind,
    v.state,
    v.holder,
    v.started_at,
    v.expires_at,
    b.scope,
    b.fingerprint
from holdfast_needs as n
inner join holdfast_run as v on v.id = n.needed
left join holdfast_builds as b on b.run_id = n.needed
where n.run_id = :run_id
order by n.needed
limit :limit

-- name: find_met_needs_of
-- What these waiting runs need and has ended.
select
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from holdfast_needs as n
inner join holdfast_outcomes as o on o.run_id = n.needed
where n.run_id in {ids}

-- name: find_needs_on
-- Who needs these runs, which have ended.
select
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from holdfast_needs as n {unlocked}
inner join holdfast_outcomes as o on o.run_id = n.needed
where n.needed in {ids}
order by
    n.needed,
    n.run_id
limit :limit

-- name: find_endings
-- How these runs ended that others needed.
select
    r.id as run_id,
    r.job,
    r.kind,
    r.stage,
    r.segment,
    o.state,
    o.failure_type,
    o.error
from holdfast_runs as r
inner join holdfast_outcomes as o on o.run_id = r.id
where r.id in {ids}

-- name: find_needs_after
-- A page of all needs, to find those whose ring was lost.
select
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from holdfast_needs as n {unlocked}
left join holdfast_outcomes as o on o.run_id = n.needed
where n.needed > :needed or (n.needed = :needed and n.run_id > :run_id)
order by
    n.needed,
    n.run_id
limit :limit

-- name: get_dependencies
-- What a run needs, and how it depends on each.
select
    needed,
    dependencies
from holdfast_runs
where id = :id

-- name: delete_needs (sqlite)
-- These needs are met; each comes back to whoever removed it, and to no one else.
delete from holdfast_needs
where (needed, run_id) in (select value ->> 'needed', value ->> 'run_id' from json_each(:rows))
returning needed, run_id

-- name: delete_needs (postgres)
delete from holdfast_needs as n
using json_to_recordset(cast(:rows as json)) as r (needed text, run_id text)
where n.needed = r.needed and n.run_id = r.run_id
returning n.needed, n.run_id

-- name: delete_needs (sqlserver)
delete n
output
    deleted.needed,
    deleted.run_id
from openjson(:rows) with (needed varchar(100), run_id varchar(100)) as r
inner join holdfast_needs as n with (rowlock)
    on
        n.needed = r.needed collate latin1_general_100_bin2
        and n.run_id = r.run_id collate latin1_general_100_bin2
{seek}

-- name: delete_needs_of
-- These runs need nothing any more.
delete from holdfast_needs
where run_id in {ids}
