-- What was submitted.
select
    id,
    args,
    policy,
    key as own_key,
    key_limit as own_key_limit,
    tags,
    again_of,
    kind,
    parent_id,
    stage,
    segment,
    needed,
    trace,
    created_at
from holdfast_runs
where id = any (array(select json_array_elements_text(cast(:ids as json))))
