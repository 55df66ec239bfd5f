-- Dependencies: which runs must end before another one starts, and how many of them have not ended.

-- name: insert_dependencies
-- Insert dependencies.
{insert holdfast_dependencies: depends_on id, run_id id, must_succeed int}

-- name: insert_new_dependencies
-- Insert dependencies, except those that exist already.
{insert holdfast_dependencies: depends_on id, run_id id, must_succeed int; unless depends_on, run_id; returning depends_on, run_id}

-- name: subtract_dependencies (sqlite)
-- Subtract the dependencies that have ended from `dependencies_left`, and the failed ones from `failures_allowed`. If
-- none are left, the run becomes unchecked. SQLite 3.40 does not support an alias in `returning`.
update holdfast_waits
set
    dependencies_left = dependencies_left - (r.value ->> 'count'),
    failures_allowed = failures_allowed - (r.value ->> 'bad'),
    unchecked = case when dependencies_left <= (r.value ->> 'count') then 1 else unchecked end
from json_each(:rows) as r
where holdfast_waits.run_id = r.value ->> 'run_id'
returning run_id, run_key, dependencies_left, due_at, failures_allowed, pending_action

-- name: subtract_dependencies (postgres)
update holdfast_waits as w
set
    dependencies_left = w.dependencies_left - r.count,
    failures_allowed = w.failures_allowed - r.bad,
    unchecked = case when w.dependencies_left <= r.count then 1 else w.unchecked end
from json_to_recordset(cast(:rows as json)) as r (run_id text, count integer, bad integer)
where w.run_id = r.run_id
returning w.run_id, w.run_key, w.dependencies_left, w.due_at, w.failures_allowed, w.pending_action

-- name: subtract_dependencies (sqlserver)
update w
set
    dependencies_left = w.dependencies_left - r.[count],
    failures_allowed = w.failures_allowed - r.bad,
    unchecked = case when w.dependencies_left <= r.[count] then 1 else w.unchecked end
output
    inserted.run_id,
    inserted.run_key,
    inserted.dependencies_left,
    inserted.due_at,
    inserted.failures_allowed,
    inserted.pending_action
from openjson(:rows) with (run_id varchar(100), [count] int, bad int) as r
inner join holdfast_waits as w with (rowlock) on w.run_id = r.run_id collate latin1_general_100_bin2
{seek}

-- name: set_depends_on
-- Record the dependencies of these runs, now that their builds are known.
update holdfast_runs as r
set depends_on = k.depends_on
from {rows: id id, depends_on text} as k
where r.id = k.id

-- name: set_must_succeed
-- Require that these dependencies succeed, although at first they only had to end.
update holdfast_dependencies as n
set must_succeed = 1
from {rows: depends_on id, run_id id} as r
where n.depends_on = r.depends_on and n.run_id = r.run_id and n.must_succeed = 0

-- name: find_dependencies_of
-- Find the first dependencies of a run that have not ended.
select
    n.depends_on,
    v.job,
    v.kind,
    v.state,
    v.holder,
    v.started_at,
    v.expires_at,
    b.scope,
    b.fingerprint
from holdfast_dependencies as n
inner join holdfast_run_view as v on v.id = n.depends_on
left join holdfast_builds as b on b.run_id = n.depends_on
where n.run_id = :run_id
order by n.depends_on
limit :limit

-- name: find_met_dependencies_of
-- Find the dependencies of these waiting runs that have ended.
select
    n.depends_on,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from holdfast_dependencies as n
inner join holdfast_outcomes as o on o.run_id = n.depends_on
where n.run_id in {ids}

-- name: find_dependents
-- Find the runs that depend on these runs, which have ended.
select
    n.depends_on,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from holdfast_dependencies as n {unlocked}
inner join holdfast_outcomes as o on o.run_id = n.depends_on
where n.depends_on in {ids}
order by
    n.depends_on,
    n.run_id
limit :limit

-- name: find_dependency_outcomes
-- Find how these dependencies ended.
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

-- name: find_dependencies_after
-- Read a page of all dependencies, to find those whose notification was lost.
select
    n.depends_on,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from holdfast_dependencies as n {unlocked}
left join holdfast_outcomes as o on o.run_id = n.depends_on
where n.depends_on > :depends_on or (n.depends_on = :depends_on and n.run_id > :run_id)
order by
    n.depends_on,
    n.run_id
limit :limit

-- name: get_dependency_terms
-- Find the dependencies of a run, and whether each must succeed.
select
    depends_on,
    dependency_terms
from holdfast_runs
where id = :id

-- name: delete_dependencies (sqlite)
-- Delete dependencies and return them. Each is returned only to the transaction that deleted it.
delete from holdfast_dependencies
where (depends_on, run_id) in (select value ->> 'depends_on', value ->> 'run_id' from json_each(:rows))
returning depends_on, run_id

-- name: delete_dependencies (postgres)
delete from holdfast_dependencies as n
using json_to_recordset(cast(:rows as json)) as r (depends_on text, run_id text)
where n.depends_on = r.depends_on and n.run_id = r.run_id
returning n.depends_on, n.run_id

-- name: delete_dependencies (sqlserver)
delete n
output
    deleted.depends_on,
    deleted.run_id
from openjson(:rows) with (depends_on varchar(100), run_id varchar(100)) as r
inner join holdfast_dependencies as n with (rowlock)
    on
        n.depends_on = r.depends_on collate latin1_general_100_bin2
        and n.run_id = r.run_id collate latin1_general_100_bin2
{seek}

-- name: delete_dependencies_of
-- Delete all dependencies of these runs.
delete from holdfast_dependencies
where run_id in {ids}
