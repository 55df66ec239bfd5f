-- What was submitted.
select
    id,
    args,
    policy,
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
where id in (select value from json_each(:ids))
