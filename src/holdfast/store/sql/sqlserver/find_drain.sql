-- How many of the last runs that ended were of this queue (* is every one), and since when those last ones are.
select
    count(case when r.queue = :queue or :queue = '*' then 1 end) as ended,
    min(o.finished_at) as oldest_at
from (
    select succeeded.run_id, succeeded.finished_at
    from (
        select top (500) run_id, finished_at
        from holdfast_outcomes
        where state = 'succeeded' and finished_at > :since
        order by finished_at desc
    ) as succeeded
    union all
    select failed.run_id, failed.finished_at
    from (
        select top (500) run_id, finished_at
        from holdfast_outcomes
        where state = 'failed' and finished_at > :since
        order by finished_at desc
    ) as failed
) as o
inner join holdfast_runs as r on r.id = o.run_id
