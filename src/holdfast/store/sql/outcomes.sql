-- Outcomes: how runs ended.

-- name: insert_outcomes (sqlite)
-- End runs.
insert into holdfast_outcomes (
    run_id,
    state,
    failure_type,
    error,
    result,
    attempt,
    tries,
    takeovers,
    holder,
    started_at,
    finished_at
)
select
    value ->> 'run_id',
    value ->> 'state',
    value ->> 'failure_type',
    value ->> 'error',
    value ->> 'result',
    value ->> 'attempt',
    value ->> 'tries',
    value ->> 'takeovers',
    value ->> 'holder',
    value ->> 'started_at',
    :now
from json_each(:rows)
where true

-- name: insert_outcomes (postgres)
insert into holdfast_outcomes (
    run_id,
    state,
    failure_type,
    error,
    result,
    attempt,
    tries,
    takeovers,
    holder,
    started_at,
    finished_at
)
select
    run_id,
    state,
    failure_type,
    error,
    result,
    attempt,
    tries,
    takeovers,
    holder,
    started_at,
    :now
from json_to_recordset(cast(:rows as json)) as r (run_id text, state text, failure_type text, error text, result text, attempt integer, tries integer, takeovers integer, holder text, started_at timestamptz)

-- name: insert_outcomes (sqlserver)
insert into holdfast_outcomes (
    run_id,
    state,
    failure_type,
    error,
    result,
    attempt,
    tries,
    takeovers,
    holder,
    started_at,
    finished_at
)
select
    r.run_id,
    r.state,
    r.failure_type,
    r.error,
    r.result,
    r.attempt,
    r.tries,
    r.takeovers,
    r.holder,
    r.started_at,
    :now
from openjson(:rows) with (
    run_id varchar(100),
    state nvarchar(1000),
    failure_type nvarchar(max),
    error nvarchar(max),
    result nvarchar(max),
    attempt int,
    tries int,
    takeovers int,
    holder nvarchar(1000),
    started_at datetime2(6)
) as r

-- name: find_outcomes (sqlite)
-- How these runs ended, those that did.
select
    run_id,
    state
from holdfast_outcomes
where run_id in (select value from json_each(:ids))

-- name: find_outcomes (postgres)
select
    run_id,
    state
from holdfast_outcomes
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))

-- name: find_outcomes (sqlserver)
select
    o.run_id,
    o.state
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_outcomes as o on o.run_id = k.id collate latin1_general_100_bin2

-- name: find_results (sqlite)
-- What these runs left behind, those that have ended.
select
    o.run_id,
    r.job,
    o.state,
    o.failure_type,
    o.error,
    o.result
from holdfast_outcomes as o
left join holdfast_runs as r on r.id = o.run_id
where o.run_id in (select value from json_each(:ids))

-- name: find_results (postgres)
select
    o.run_id,
    r.job,
    o.state,
    o.failure_type,
    o.error,
    o.result
from holdfast_outcomes as o
left join holdfast_runs as r on r.id = o.run_id
where o.run_id = any (array(select json_array_elements_text(cast(:ids as json))))

-- name: find_results (sqlserver)
select
    o.run_id,
    r.job,
    o.state,
    o.failure_type,
    o.error,
    o.result
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_outcomes as o on o.run_id = k.id collate latin1_general_100_bin2
left join holdfast_runs as r on r.id = o.run_id

-- name: find_latest (sqlite)
-- Runs that ended last, since then; no more of any state are read than asked for.
select
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.attempt,
    o.started_at,
    o.finished_at
from (
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'succeeded' and finished_at >= :since
        order by finished_at desc
        limit :limit
    ) as succeeded
    union all
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'failed' and finished_at >= :since
        order by finished_at desc
        limit :limit
    ) as failed
    union all
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'cancelled' and finished_at >= :since
        order by finished_at desc
        limit :limit
    ) as cancelled
    union all
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'timed_out' and finished_at >= :since
        order by finished_at desc
        limit :limit
    ) as timed_out
    order by finished_at desc
    limit :limit
) as o
cross join holdfast_runs as r on r.id = o.run_id
order by o.finished_at desc

-- name: find_latest (postgres)
select
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.attempt,
    o.started_at,
    o.finished_at
from (
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'succeeded' and finished_at >= :since
        order by finished_at desc
        limit :limit
    ) as succeeded
    union all
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'failed' and finished_at >= :since
        order by finished_at desc
        limit :limit
    ) as failed
    union all
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'cancelled' and finished_at >= :since
        order by finished_at desc
        limit :limit
    ) as cancelled
    union all
    select *
    from (
        select
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'timed_out' and finished_at >= :since
        order by finished_at desc
        limit :limit
    ) as timed_out
    order by finished_at desc
    limit :limit
) as o
-- The limit lets the planner do nothing but look up each.
cross join lateral (select job, queue, created_at from holdfast_runs where id = o.run_id limit 1) as r
order by o.finished_at desc

-- name: find_latest (sqlserver)
select
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.attempt,
    o.started_at,
    o.finished_at
from (
    select top (:limit) s.*
    from (
    select *
    from (
        select top (:limit)
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'succeeded' and finished_at >= :since
        order by finished_at desc
    ) as succeeded
    union all
    select *
    from (
        select top (:limit)
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'failed' and finished_at >= :since
        order by finished_at desc
    ) as failed
    union all
    select *
    from (
        select top (:limit)
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'cancelled' and finished_at >= :since
        order by finished_at desc
    ) as cancelled
    union all
    select *
    from (
        select top (:limit)
            run_id,
            state,
            attempt,
            started_at,
            finished_at
        from holdfast_outcomes
        where state = 'timed_out' and finished_at >= :since
        order by finished_at desc
    ) as timed_out
    ) as s
    order by s.finished_at desc
) as o
inner loop join holdfast_runs as r on r.id = o.run_id
order by o.finished_at desc

-- name: find_failures (sqlite)
-- The newest failures, each with the end of its error.
select
    o.run_id,
    r.job,
    o.failure_type,
    o.error,
    o.finished_at
from (
    select *
    from (
        select
            run_id,
            failure_type,
            substr(error, -:tail) as error,
            finished_at
        from holdfast_outcomes
        where state = 'failed'
        order by finished_at desc
        limit :limit
    ) as failed
    union all
    select *
    from (
        select
            run_id,
            failure_type,
            substr(error, -:tail) as error,
            finished_at
        from holdfast_outcomes
        where state = 'timed_out'
        order by finished_at desc
        limit :limit
    ) as timed_out
    order by finished_at desc
    limit :limit
) as o
cross join holdfast_runs as r on r.id = o.run_id
order by o.finished_at desc

-- name: find_failures (postgres)
select
    o.run_id,
    r.job,
    o.failure_type,
    o.error,
    o.finished_at
from (
    select *
    from (
        select
            run_id,
            failure_type,
            right(error, :tail) as error,
            finished_at
        from holdfast_outcomes
        where state = 'failed'
        order by finished_at desc
        limit :limit
    ) as failed
    union all
    select *
    from (
        select
            run_id,
            failure_type,
            right(error, :tail) as error,
            finished_at
        from holdfast_outcomes
        where state = 'timed_out'
        order by finished_at desc
        limit :limit
    ) as timed_out
    order by finished_at desc
    limit :limit
) as o
-- The limit lets the planner do nothing but look up each.
cross join lateral (select job from holdfast_runs where id = o.run_id limit 1) as r
order by o.finished_at desc

-- name: find_failures (sqlserver)
select
    o.run_id,
    r.job,
    o.failure_type,
    o.error,
    o.finished_at
from (
    select top (:limit) s.*
    from (
    select *
    from (
        select top (:limit)
            run_id,
            failure_type,
            right(error, :tail) as error,
            finished_at
        from holdfast_outcomes
        where state = 'failed'
        order by finished_at desc
    ) as failed
    union all
    select *
    from (
        select top (:limit)
            run_id,
            failure_type,
            right(error, :tail) as error,
            finished_at
        from holdfast_outcomes
        where state = 'timed_out'
        order by finished_at desc
    ) as timed_out
    ) as s
    order by s.finished_at desc
) as o
inner loop join holdfast_runs as r on r.id = o.run_id
order by o.finished_at desc
