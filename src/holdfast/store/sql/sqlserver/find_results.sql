-- What these runs left behind, those that have ended.
select
    o.run_id,
    r.job,
    o.state,
    o.failure_type,
    o.error,
    o.result
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_outcomes as o on o.run_id = k.id collate latin1_general_100_bin2
left join holdfast_runs as r on r.id = o.run_id
