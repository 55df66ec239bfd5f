-- The runs of these segments of a stage, those that there are.
select
    id,
    segment
from holdfast_runs
where
    parent_id = :parent_id
    and stage = :stage
    and segment in (select value from json_each(:names))
