-- The segments of a stage that there are; none of them can be removed before this transaction ends.
select id
from holdfast_runs with (repeatableread, rowlock)
where
    parent_id = :parent_id
    and parent_id is not null
    and stage = :stage
    and segment <> ''
