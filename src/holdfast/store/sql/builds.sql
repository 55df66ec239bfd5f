-- Builds: each is made once per scope and fingerprint. Build requests belong to runs submitted in a caller transaction.

-- name: insert_builds
-- Insert new builds and return them. Each is returned only to the transaction that inserted it and submits its run.
{insert holdfast_builds:
    job name, scope name, fingerprint code, run_id id, created_at time;
    unless job, scope, fingerprint; returning job, scope, fingerprint}

-- name: find_builds
-- Find these builds, and how the run of each ended, if it has. `cancelled_id` is that run if it was cancelled, or else
-- the run that it replaced, if that one was cancelled.
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
-- Find a build by its identity.
select
    job,
    scope,
    fingerprint,
    run_id,
    state,
    stale_at,
    reason,
    created_at,
    holder,
    started_at,
    finished_at,
    failure_type,
    error,
    result,
    waiting
from holdfast_build_view
where job = :job and scope = :scope and fingerprint = :fingerprint

-- name: list_builds
-- List builds, the ones with the newest runs first.
select
    job,
    scope,
    fingerprint,
    run_id,
    state,
    stale_at,
    reason,
    created_at,
    holder,
    started_at,
    finished_at,
    failure_type,
    error,
    result,
    waiting
from holdfast_build_view
where
    run_id < :before
    and (cast(:state as varchar(20)) is null or state = :state)
    and (cast(:job as varchar(200)) is null or job = :job)
    and (cast(:scope as varchar(400)) is null or scope = :scope)
    and (cast(:fingerprint as varchar(128)) is null or fingerprint = :fingerprint)
order by run_id desc
limit :limit

-- name: find_builds_of
-- Find the builds of one job and fingerprint, and the build that this run makes.
select
    job,
    scope,
    fingerprint
from holdfast_builds
where (job = :job and fingerprint = :fingerprint) or run_id = :run_id

-- name: replace_builds (sqlite)
-- Let other runs make these builds, unless their runs have been replaced meanwhile. Each build is returned only to the
-- transaction that replaced its run.
update holdfast_builds
set
    run_id = r.value ->> 'run_id',
    stale_at = null,
    reason = null,
    created_at = r.value ->> 'created_at'
from json_each(:rows) as r
where
    holdfast_builds.job = r.value ->> 'job'
    and holdfast_builds.scope = r.value ->> 'scope'
    and holdfast_builds.fingerprint = r.value ->> 'fingerprint'
    and holdfast_builds.run_id = r.value ->> 'old_id'
returning job, scope, fingerprint

-- name: replace_builds (postgres)
-- Lock the rows first, in the order of their keys, so that two of these statements never deadlock.
with locked as (
    select
        b.job,
        b.scope,
        b.fingerprint,
        r.run_id,
        r.created_at
    from json_to_recordset(cast(:rows as json)) as r (job text, scope text, fingerprint text, run_id text, old_id text, created_at timestamptz)
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
    reason = null,
    created_at = locked.created_at
from locked
where b.job = locked.job and b.scope = locked.scope and b.fingerprint = locked.fingerprint
returning b.job, b.scope, b.fingerprint

-- name: replace_builds (sqlserver)
update b
set
    run_id = r.run_id,
    stale_at = null,
    reason = null,
    created_at = r.created_at
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
    created_at datetime2(6)
) as r
inner join holdfast_builds as b with (rowlock)
    on
        b.job = r.job collate latin1_general_100_bin2
        and b.scope = r.scope collate latin1_general_100_bin2
        and b.fingerprint = r.fingerprint collate latin1_general_100_bin2
        and b.run_id = r.old_id collate latin1_general_100_bin2
{seek}

-- name: invalidate_build
-- Mark a build as stale. If it is stale already, it keeps its reason.
update holdfast_builds
set
    stale_at = :now,
    reason = :reason
where
    job = :job
    and scope = :scope
    and fingerprint = :fingerprint
    and run_id = :run_id
    and stale_at is null

-- name: count_uses (sqlite)
-- Count the runs that depend on each of these runs, among the newest `limit` runs with dependencies. The limit bounds
-- how much is read.
select
    n.value as run_id,
    count(distinct r.id) as uses
from (
    select id, depends_on
    from holdfast_runs
    where depends_on is not null
    order by id desc
    limit :limit
) as r
inner join json_each(case when json_valid(r.depends_on) then r.depends_on else '[]' end) as n
where n.value in {ids}
group by n.value

-- name: count_uses (postgres)
-- A text that is not an array counts as an empty one.
select
    n.run_id,
    count(distinct r.id) as uses
from (
    select id, depends_on
    from holdfast_runs
    where depends_on is not null
    order by id desc
    limit :limit
) as r
cross join lateral json_array_elements_text(
    case json_typeof(holdfast_json(r.depends_on)) when 'array' then holdfast_json(r.depends_on) else cast('[]' as json) end
) as n (run_id)
where n.run_id in {ids}
group by n.run_id

-- name: count_uses (sqlserver)
select
    n.run_id,
    count(distinct r.id) as uses
from (
    select top (:limit) id, depends_on
    from holdfast_runs with (readpast, readcommittedlock)
    where depends_on is not null
    order by id desc
) as r
cross apply openjson(case isjson(r.depends_on) when 1 then r.depends_on else '[]' end) with (run_id varchar(100) '$') as n
inner join openjson(:ids) with (id varchar(100) '$') as k on n.run_id collate latin1_general_100_bin2 = k.id collate latin1_general_100_bin2
group by n.run_id

-- name: insert_build_requests
-- Insert build requests of runs submitted in a caller transaction; an orchestrator gets or creates the builds.
{insert holdfast_build_requests:
    run_id id, number int, job name, scope name, fingerprint code, must_succeed int, submission text}

-- name: find_build_requests
-- Find build requests that an orchestrator has not handled yet.
select
    a.run_id,
    a.number,
    a.job,
    a.scope,
    a.fingerprint,
    a.must_succeed,
    a.submission,
    r.created_at
from holdfast_build_requests as a {unlocked}
inner join holdfast_runs as r on r.id = a.run_id
order by
    a.run_id,
    a.number
limit :limit

-- name: find_build_requests_of
-- Find the build requests of a run that no orchestrator has handled yet.
select
    job,
    scope,
    fingerprint
from holdfast_build_requests
where run_id = :run_id
order by number

-- name: delete_build_requests (sqlite)
-- Delete handled build requests and return them. Each is returned only to the transaction that deleted it.
delete from holdfast_build_requests
where (run_id, number) in (select value ->> 'run_id', value ->> 'number' from json_each(:rows))
returning run_id, number

-- name: delete_build_requests (postgres)
delete from holdfast_build_requests as a
using json_to_recordset(cast(:rows as json)) as r (run_id text, number integer)
where a.run_id = r.run_id and a.number = r.number
returning a.run_id, a.number

-- name: delete_build_requests (sqlserver)
delete a
output
    deleted.run_id,
    deleted.number
from openjson(:rows) with (run_id varchar(100), number int) as r
inner join holdfast_build_requests as a with (rowlock)
    on a.run_id = r.run_id collate latin1_general_100_bin2 and a.number = r.number
{seek}

-- name: delete_build_requests_of
-- Delete all build requests of these runs.
delete from holdfast_build_requests
where run_id in {ids}
