-- A run that another one has submitted under this name.
select
    id,
    job
from holdfast_runs
where
    parent_id = :parent_id
    and stage = 'child'
    and segment = :name
