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
