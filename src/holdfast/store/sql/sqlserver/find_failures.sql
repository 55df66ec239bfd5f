-- The newest failures, each with the end of its error.
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
