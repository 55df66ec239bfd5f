-- What was submitted.
select
    r.id,
    r.args,
    r.policy,
    r.tags,
    r.again_of,
    r.created_at
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as r on r.id = k.id collate latin1_general_100_bin2
