-- What these runs have made others do: stages, segments, children; and when that ended. The outcomes are looked up one
-- by one: joined, the whole of their table may be read for one large family.
select
    r.id,
    r.parent_id,
    r.audit,
    (select o.finished_at from holdfast_outcomes as o where o.run_id = r.id) as finished_at
from holdfast_runs as r
where r.parent_id = any (array(select json_array_elements_text(cast(:ids as json))))
