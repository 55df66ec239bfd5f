-- What the segments of a stage came to, those that succeeded.
select
    r.segment,
    o.result
from holdfast_runs as r
inner join holdfast_outcomes as o on o.run_id = r.id
where
    r.parent_id = :parent_id
    and r.stage = :stage
    and r.segment <> ''
    and o.state = 'succeeded'
order by r.id
