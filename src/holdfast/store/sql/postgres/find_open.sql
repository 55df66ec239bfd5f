-- Those of these runs that exist and have not ended.
select r.id
from holdfast_runs as r
where
    r.id = any (array(select json_array_elements_text(cast(:ids as json))))
    and not exists (select 1 from holdfast_outcomes as o where o.run_id = r.id)
