-- How far each of these pipelines is: its own stages, those that have succeeded, and when the first one began.
select
    v.parent_id,
    count(*) as stages,
    sum(case when v.state = 'succeeded' then 1 else 0 end) as done,
    sum(case when v.attempt > 0 then 1 else 0 end) as begun,
    min(v.started_at) as begun_at
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_run as v on v.parent_id = k.id collate latin1_general_100_bin2
where v.segment = ''
group by v.parent_id
