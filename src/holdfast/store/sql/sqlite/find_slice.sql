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
    select *
    from (
        select
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
        where state = 'failed'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
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
        where state = 'cancelled'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
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
        where state = 'timed_out'
            and finished_at >= :since
            and finished_at < :before
        order by finished_at
        limit :limit
    ) as timed_out
    order by finished_at
    limit :limit
) as o
cross join holdfast_runs as r on r.id = o.run_id
group by
    r.job,
    r.queue,
    r.created_at,
    o.state,
    o.attempt,
    o.started_at,
    o.finished_at
order by o.finished_at
