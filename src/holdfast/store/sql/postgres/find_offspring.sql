-- What these runs have made others do: stages, segments, children; and how that stands.
select
    r.id,
    r.parent_id,
    r.audit,
    o.finished_at
from holdfast_runs as r
left join holdfast_outcomes as o on o.run_id = r.id
where r.parent_id = any (array(select json_array_elements_text(cast(:ids as json))))
