-- A segment of a stage that no one has claimed yet.
select top (1) r.id
from holdfast_runs as r
inner join holdfast_ready as y on y.run_id = r.id
where
    r.parent_id = :parent_id
    and r.stage = :stage
    and r.segment <> ''
order by r.id
