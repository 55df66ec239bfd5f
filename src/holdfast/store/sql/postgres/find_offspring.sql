-- What these runs have made others do: stages, segments, children; and how that ended. The outcomes are looked up one
-- by one: joined, the whole of their table may be read for one large family.
select
    r.id,
    r.parent_id,
    r.audit,
    o.state,
    o.finished_at
from holdfast_runs as r
left join lateral (
    select
        state,
        finished_at
    from holdfast_outcomes
    where run_id = r.id
    limit 1
) as o on true
where r.parent_id = any (array(select json_array_elements_text(cast(:ids as json))))
