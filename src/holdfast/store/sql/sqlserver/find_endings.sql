-- How these runs ended that others needed.
select
    r.id as run_id,
    r.job,
    r.kind,
    r.stage,
    r.segment,
    o.state,
    o.failure_type,
    o.error
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as r on r.id = k.id collate latin1_general_100_bin2
inner join holdfast_outcomes as o on o.run_id = r.id
