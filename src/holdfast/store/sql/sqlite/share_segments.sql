-- The segments of a stage that there are; none of them can be removed before this transaction ends.
select id
from holdfast_runs
where
    parent_id = :parent_id
    and stage = :stage
    and segment <> ''
