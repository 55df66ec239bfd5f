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
