-- How many of the last runs that ended were of this queue (* is every one), and since when those last ones are.
with recent as (
    select run_id, finished_at
    from (
        select run_id, finished_at
        from holdfast_outcomes
        where state = 'succeeded' and finished_at > :since
        order by finished_at desc
        limit 500
    ) as succeeded
    union all
    select run_id, finished_at
    from (
        select run_id, finished_at
        from holdfast_outcomes
        where state = 'failed' and finished_at > :since
        order by finished_at desc
        limit 500
    ) as failed
)

select
    count(case when r.queue = :queue or cast(:queue as text) = '*' then 1 end) as ended,
    min(o.finished_at) as oldest_at
from recent as o
inner join holdfast_runs as r on r.id = o.run_id
