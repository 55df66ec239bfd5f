-- Builds: made once for each fingerprint and shared. "Asks" are builds requested in a caller's transaction.

-- name: insert_builds
-- Builds that no one has asked for before; each comes back to whoever is to make it.
{insert holdfast_builds:
    job name, scope name, fingerprint code, run_id id, since_at time;
    unless job, scope, fingerprint; returning job, scope, fingerprint}

-- name: find_builds
-- These builds, and how the run of each ended, if it has. `cancelled_id` is the newest of its runs that was cancelled: this
-- one, or the one that it replaced.
select
    b.job,
    b.scope,
    b.fingerprint,
    b.run_id,
    b.stale_at,
    r.id as known,
    o.state,
    c.run_id as cancelled_id,
    c.finished_at as cancelled_at
from {rows: job name, scope name, fingerprint code} as k
inner join holdfast_builds as b on b.job = k.job and b.scope = k.scope and b.fingerprint = k.fingerprint
left join holdfast_runs as r on r.id = b.run_id
left join holdfast_outcomes as o on o.run_id = b.run_id
left join holdfast_outcomes as c
    on
        c.run_id = case when o.state = 'cancelled' then b.run_id else r.again_of end
        and c.state = 'cancelled'

-- name: get_build
-- A build by its identity.
select
    job,
    scope,
    fingerprint,
    run_id,
    state,
    stale_at,
    because,
    since_at,
    holder,
    started_at,
    finished_at,
    failure_type,
    error,
    result,
    waiting
from holdfast_build
where job = :job and scope = :scope and fingerprint = :fingerprint

-- name: list_builds
-- The newest makings first.
select
    job,
    scope,
    fingerprint,
    run_id,
    state,
    stale_at,
    because,
    since_at,
    holder,
    started_at,
    finished_at,
    failure_type,
    error,
    result,
    waiting
from holdfast_build
where
    run_id < :before
    and (cast(:state as varchar(20)) is null or state = :state)
    and (cast(:job as varchar(200)) is null or job = :job)
    and (cast(:scope as varchar(400)) is null or scope = :scope)
    and (cast(:fingerprint as varchar(128)) is null or fingerprint = :fingerprint)
order by run_id desc
limit :limit

-- name: find_builds_of
-- Builds of one job and one fingerprint, and the build that this run makes.
select
    job,
    scope,
    fingerprint
from holdfast_builds
where (job = :job and fingerprint = :fingerprint) or run_id = :run_id

-- name: replace_builds (sqlite)
-- Let another run make these builds, if the one that we saw still stands there; each comes back to whoever replaced it.
update holdfast_builds
set
    run_id = r.value ->> 'run_id',
    stale_at = null,
    because = null,
    since_at = r.value ->> 'since_at'
from json_each(:rows) as r
where
    holdfast_builds.job = r.value ->> 'job'
    and holdfast_builds.scope = r.value ->> 'scope'
    and holdfast_builds.fingerprint = r.value ->> 'fingerprint'
    and holdfast_builds.run_id = r.value ->> 'old_id'
returning job, scope, fingerprint

-- name: replace_builds (postgres)
-- Locked first, in the order of their keys: two of these never wait for each other.
with locked as (
    select
        b.job,
        b.scope,
        b.fingerprint,
        r.run_id,
        r.since_at
    from json_to_recordset(cast(:rows as json)) as r (job text, scope text, fingerprint text, run_id text, old_id text, since_at timestamptz)
    inner join holdfast_builds as b
        on
            b.job = r.job
            and b.scope = r.scope
            and b.fingerprint = r.fingerprint
            and b.run_id = r.old_id
    order by
        b.job,
        b.scope,
        b.fingerprint
    for update of b
)

update holdfast_builds as b
set
    run_id = locked.run_id,
    stale_at = null,
    because = null,
    since_at = locked.since_at
from locked
where b.job = locked.job and b.scope = locked.scope and b.fingerprint = locked.fingerprint
returning b.job, b.scope, b.fingerprint

-- name: replace_builds (sqlserver)
update b
set
    run_id = r.run_id,
    stale_at = null,
    because = null,
    since_at = r.since_at
output
    inserted.job,
    inserted.scope,
    inserted.fingerprint
from openjson(:rows) with (
    job nvarchar(1000),
    scope nvarchar(1000),
    fingerprint varchar(1000),
    run_id varchar(100),
    old_id varchar(100),
    since_at datetime2(6)
) as r
inner join holdfast_builds as b with (rowlock)
    on
        b.job = r.job collate latin1_general_100_bin2
        and b.scope = r.scope collate latin1_general_100_bin2
        and b.fingerprint = r.fingerprint collate latin1_general_100_bin2
        and b.run_id = r.old_id collate latin1_general_100_bin2
{seek}

-- name: invalidate_build
-- What was made is not good any more; why it was first called so stays.
update holdfast_builds
set
    stale_at = :now,
    because = :because
where
    job = :job
    and scope = :scope
    and fingerprint = :fingerprint
    and run_id = :run_id
    and stale_at is null

-- name: count_uses (sqlite)
-- How many runs needed each of these, among the newest that needed anything: so much is read, whatever there is.
select
    n.value as run_id,
    count(distinct r.id) as uses
from (
    select id, needed
    from holdfast_runs
    where needed is not null
    order by id desc
    limit :limit
) as r
inner join json_each(case when json_valid(r.needed) then r.needed else '[]' end) as n
where n.value in {ids}
group by n.value

-- name: count_uses (postgres)
-- A text that is no array counts as an empty one.
select
    n.run_id,
    count(distinct r.id) as uses
from (
    select id, needed
    from holdfast_runs
    where needed is not null
    order by id desc
    limit :limit
) as r
cross join lateral json_array_elements_text(
    case json_typeof(holdfast_json(r.needed)) when 'array' then holdfast_json(r.needed) else cast('[]' as json) end
) as n (run_id)
where n.run_id in {ids}
group by n.run_id

-- name: count_uses (sqlserver)
select
    n.run_id,
    count(distinct r.id) as uses
from (
    select top (:limit) id, needed
    from holdfast_runs with (readpast, readcommittedlock)
    where needed is not null
    order by id desc
) as r
cross apply openjson(case isjson(r.needed) when 1 then r.needed else '[]' end) with (run_id varchar(100) '$') as n
inner join openjson(:ids) with (id varchar(100) '$') as k on n.run_id collate latin1_general_100_bin2 = k.id collate latin1_general_100_bin2
group by n.run_id

-- name: insert_asks
-- Builds that runs of a caller's transaction need, for an orchestrator to get or create.
{insert holdfast_asks:
    run_id id, number int, job name, scope name, fingerprint code, must_succeed int, submission text}

-- name: find_asks
-- Builds that an orchestrator has yet to get or create.
select
    a.run_id,
    a.number,
    a.job,
    a.scope,
    a.fingerprint,
    a.must_succeed,
    a.submission,
    r.created_at
from holdfast_asks as a {unlocked}
inner join holdfast_runs as r on r.id = a.run_id
order by
    a.run_id,
    a.number
limit :limit

-- name: find_asks_of
-- The builds that a run asks for and that no orchestrator has given it yet.
select
    job,
    scope,
    fingerprint
from holdfast_asks
where run_id = :run_id
order by number

-- name: delete_asks (sqlite)
-- These asks have their build; each comes back to whoever removed it, and to no one else.
delete from holdfast_asks
where (run_id, number) in (select value ->> 'run_id', value ->> 'number' from json_each(:rows))
returning run_id, number

-- name: delete_asks (postgres)
delete from holdfast_asks as a
using json_to_recordset(cast(:rows as json)) as r (run_id text, number integer)
where a.run_id = r.run_id and a.number = r.number
returning a.run_id, a.number

-- name: delete_asks (sqlserver)
delete a
output
    deleted.run_id,
    deleted.number
from openjson(:rows) with (run_id varchar(100), number int) as r
inner join holdfast_asks as a with (rowlock)
    on a.run_id = r.run_id collate latin1_general_100_bin2 and a.number = r.number
{seek}

-- name: delete_asks_of
-- These runs ask for nothing any more.
delete from holdfast_asks
where run_id in {ids}
