-- What was submitted.
select
    r.id,
    r.args,
    r.policy,
    r.[key] as own_key,
    r.key_limit as own_key_limit,
    r.tags,
    r.again_of,
    r.kind,
    r.parent_id,
    r.stage,
    r.segment,
    r.needed,
    r.trace,
    r.created_at
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as r on r.id = k.id collate latin1_general_100_bin2
