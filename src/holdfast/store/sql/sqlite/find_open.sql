-- Those of these runs that exist and have not ended.
select r.id
from holdfast_runs as r
where
    r.id in (select value from json_each(:ids))
    and not exists (select 1 from holdfast_outcomes as o where o.run_id = r.id)
