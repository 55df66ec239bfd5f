-- How far each of these pipelines is: its own stages, those that have succeeded, and when the first one began.
select
    v.parent_id,
    count(*) as stages,
    sum(case when v.state = 'succeeded' then 1 else 0 end) as done,
    sum(case when v.attempt > 0 then 1 else 0 end) as begun,
    min(v.started_at) as begun_at
from holdfast_run as v
where
    v.parent_id in (select value from json_each(:ids))
    and v.segment = ''
group by v.parent_id
