-- Runs that ended between two instants, the first ones first; no more of any state are read than asked for. Those that
-- were submitted, started and ended together, as a batch does, are one row.
select
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.attempt,
    o.started_at,
    o.finished_at,
    count(*) as runs
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
        where state = 'succeeded'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
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
        where state = 'failed'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
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
        where state = 'cancelled'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
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
        where state = 'timed_out'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
    ) as timed_out
    ) as s
    order by s.finished_at
) as o
inner loop join holdfast_runs as r on r.id = o.run_id
group by
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.attempt,
    o.started_at,
    o.finished_at
order by o.finished_at
