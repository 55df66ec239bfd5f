-- How many runs of each stage of a pipeline stand where: its own, and those of its segments.
select
    v.stage,
    case when v.segment = '' then 0 else 1 end as is_segment,
    v.place,
    v.state,
    case when v.attempt > 0 then 1 else 0 end as claimed,
    case when v.due_at is not null and v.tries > 0 then 1 else 0 end as retrying,
    min(v.due_at) as due_at,
    max(case when v.attempt = 0 and v.segment = '' then v.error end) as reason,
    count(*) as runs
from holdfast_run as v
where v.parent_id = :parent_id
group by
    v.stage,
    case when v.segment = '' then 0 else 1 end,
    v.place,
    v.state,
    case when v.attempt > 0 then 1 else 0 end,
    case when v.due_at is not null and v.tries > 0 then 1 else 0 end
