-- Whether there is such a run; whoever writes has the whole database.
select id as run_id
from holdfast_runs
where id = :run_id
