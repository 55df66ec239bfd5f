-- Those of these runs that exist and have not ended.
select r.id
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as r on r.id = k.id collate latin1_general_100_bin2
where not exists (select 1 from holdfast_outcomes as o where o.run_id = r.id)
