-- Dependencies ("needs"): which runs must end before another one starts, and how many of them are still open.

-- name: insert_needs (sqlite)
-- What runs need to have ended.
insert into holdfast_needs (
    needed,
    run_id,
    must_succeed
)
select
    value ->> 'needed',
    value ->> 'run_id',
    value ->> 'must_succeed'
from json_each(:rows)
where true

-- name: insert_needs (postgres)
insert into holdfast_needs (
    needed,
    run_id,
    must_succeed
)
select
    needed,
    run_id,
    must_succeed
from json_to_recordset(cast(:rows as json)) as r (needed text, run_id text, must_succeed integer)

-- name: insert_needs (sqlserver)
insert into holdfast_needs (
    needed,
    run_id,
    must_succeed
)
select
    r.needed,
    r.run_id,
    r.must_succeed
from openjson(:rows) with (
    needed varchar(100),
    run_id varchar(100),
    must_succeed int
) as r

-- name: insert_new_needs (sqlite)
-- What runs need to have ended, where they do not need it already.
insert into holdfast_needs (
    needed,
    run_id,
    must_succeed
)
select
    value ->> 'needed',
    value ->> 'run_id',
    value ->> 'must_succeed'
from json_each(:rows)
where true
on conflict do nothing
returning needed, run_id

-- name: insert_new_needs (postgres)
insert into holdfast_needs (
    needed,
    run_id,
    must_succeed
)
select
    needed,
    run_id,
    must_succeed
from json_to_recordset(cast(:rows as json)) as r (needed text, run_id text, must_succeed integer)
order by
    needed,
    run_id
on conflict do nothing
returning needed, run_id

-- name: insert_new_needs (sqlserver)
insert into holdfast_needs (
    needed,
    run_id,
    must_succeed
)
output
    inserted.needed,
    inserted.run_id
select
    r.needed,
    r.run_id,
    r.must_succeed
from openjson(:rows) with (
    needed varchar(100),
    run_id varchar(100),
    must_succeed int
) as r
where not exists (
    select 1
    from holdfast_needs as n
    where
        n.needed = r.needed collate latin1_general_100_bin2
        and n.run_id = r.run_id collate latin1_general_100_bin2
)

-- name: subtract_needs (sqlite)
-- So many needs fewer, and so many of them ended badly; who needs nothing more is to be looked at.
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
option (force order, loop join)

-- name: set_needed (sqlite)
-- Which runs these ones need, now that their builds are known.
update holdfast_runs
set needed = r.value ->> 'needed'
from json_each(:rows) as r
where holdfast_runs.id = r.value ->> 'id'

-- name: set_needed (postgres)
update holdfast_runs as r
set needed = k.needed
from json_to_recordset(cast(:rows as json)) as k (id text, needed text)
where r.id = k.id

-- name: set_needed (sqlserver)
update r
set needed = k.needed
from openjson(:rows) with (id varchar(100), needed nvarchar(max)) as k
inner join holdfast_runs as r with (rowlock) on r.id = k.id collate latin1_general_100_bin2
option (force order, loop join)

-- name: set_must_succeed (sqlite)
-- These needs must end well, though it was first said that they need not.
update holdfast_needs
set must_succeed = 1
where
    (needed, run_id) in (select value ->> 'needed', value ->> 'run_id' from json_each(:rows))
    and must_succeed = 0

-- name: set_must_succeed (postgres)
update holdfast_needs as n
set must_succeed = 1
from json_to_recordset(cast(:rows as json)) as r (needed text, run_id text)
where n.needed = r.needed and n.run_id = r.run_id and n.must_succeed = 0

-- name: set_must_succeed (sqlserver)
update n
set must_succeed = 1
from openjson(:rows) with (needed varchar(100), run_id varchar(100)) as r
inner join holdfast_needs as n with (rowlock)
    on
        n.needed = r.needed collate latin1_general_100_bin2
        and n.run_id = r.run_id collate latin1_general_100_bin2
where n.must_succeed = 0
option (force order, loop join)

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

-- name: find_needs_of (sqlserver)
select top (:limit)
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

-- name: find_met_needs_of (sqlite)
-- What these waiting runs need and has ended.
select
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from holdfast_needs as n
inner join holdfast_outcomes as o on o.run_id = n.needed
where n.run_id in (select value from json_each(:ids))

-- name: find_met_needs_of (postgres)
select
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from holdfast_needs as n
inner join holdfast_outcomes as o on o.run_id = n.needed
where n.run_id = any (array(select json_array_elements_text(cast(:ids as json))))

-- name: find_met_needs_of (sqlserver)
select
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_needs as n on n.run_id = k.id collate latin1_general_100_bin2
inner join holdfast_outcomes as o on o.run_id = n.needed

-- name: find_needs_on (sqlite)
-- Who needs these runs, which have ended.
select
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from holdfast_needs as n
inner join holdfast_outcomes as o on o.run_id = n.needed
where n.needed in (select value from json_each(:ids))
order by
    n.needed,
    n.run_id
limit :limit

-- name: find_needs_on (postgres)
select
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from holdfast_needs as n
inner join holdfast_outcomes as o on o.run_id = n.needed
where n.needed = any (array(select json_array_elements_text(cast(:ids as json))))
order by
    n.needed,
    n.run_id
limit :limit

-- name: find_needs_on (sqlserver)
select top (:limit)
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_needs as n with (readpast, readcommittedlock) on n.needed = k.id collate latin1_general_100_bin2
inner join holdfast_outcomes as o on o.run_id = n.needed
order by
    n.needed,
    n.run_id

-- name: find_endings (sqlite)
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
where r.id in (select value from json_each(:ids))

-- name: find_endings (postgres)
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
where r.id = any (array(select json_array_elements_text(cast(:ids as json))))

-- name: find_endings (sqlserver)
select
    r.id as run_id,
    r.job,
    r.kind,
    r.stage,
    r.segment,
    o.state,
    o.failure_type,
    o.error
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as r on r.id = k.id collate latin1_general_100_bin2
inner join holdfast_outcomes as o on o.run_id = r.id

-- name: find_needs_after
-- A page of all needs, to find those whose ring was lost.
select
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from holdfast_needs as n
left join holdfast_outcomes as o on o.run_id = n.needed
where n.needed > :needed or (n.needed = :needed and n.run_id > :run_id)
order by
    n.needed,
    n.run_id
limit :limit

-- name: find_needs_after (sqlserver)
select top (:limit)
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from holdfast_needs as n with (readpast, readcommittedlock)
left join holdfast_outcomes as o on o.run_id = n.needed
where n.needed > :needed or (n.needed = :needed and n.run_id > :run_id)
order by
    n.needed,
    n.run_id

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
option (force order, loop join)

-- name: delete_needs_of (sqlite)
-- These runs need nothing any more.
delete from holdfast_needs
where run_id in (select value from json_each(:ids))

-- name: delete_needs_of (postgres)
delete from holdfast_needs
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))

-- name: delete_needs_of (sqlserver)
delete n
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_needs as n with (rowlock) on n.run_id = k.id collate latin1_general_100_bin2
option (force order, loop join)
