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
