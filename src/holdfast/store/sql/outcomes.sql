-- Outcomes: how runs ended.

-- name: insert_outcomes
-- Insert the outcomes of runs.
{insert holdfast_outcomes:
    run_id id, state name, failure_type text, error text, result text, claim int, attempt int, takeovers int,
    holder name, started_at time, finished_at = :now}

-- name: find_outcomes
-- Find how these runs ended; runs that have not ended are left out.
select
    run_id,
    state
from holdfast_outcomes
where run_id in {ids}

-- name: find_results
-- Read the results of these runs; runs that have not ended are left out.
select
    o.run_id,
    r.job,
    o.state,
    o.failure_type,
    o.error,
    o.result
from holdfast_outcomes as o
left join holdfast_runs as r on r.id = o.run_id
where o.run_id in {ids}

-- name: find_latest (sqlite)
-- Find the runs that ended since a given time, the latest first. At most `limit` of each state are read.
select
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.claim,
    o.started_at,
    o.finished_at
from (
    select *
    from (
        select
            run_id,
            state,
            claim,
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
            claim,
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
            claim,
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
            claim,
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
    o.claim,
    o.started_at,
    o.finished_at
from (
    select *
    from (
        select
            run_id,
            state,
            claim,
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
            claim,
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
            claim,
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
            claim,
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
-- The limit forces the planner to look up each row by its key.
cross join lateral (select job, queue, created_at from holdfast_runs where id = o.run_id limit 1) as r
order by o.finished_at desc

-- name: find_latest (sqlserver)
select
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.claim,
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
            claim,
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
            claim,
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
            claim,
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
            claim,
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
-- Find the newest failures, each with the end of its error.
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
-- The limit forces the planner to look up each row by its key.
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
