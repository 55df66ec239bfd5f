-- What these runs have made others do: stages, segments, children; and how that stands.
select
    r.id,
    r.parent_id,
    r.audit,
    o.state,
    o.finished_at
from holdfast_runs as r
left join holdfast_outcomes as o on o.run_id = r.id
where r.parent_id in (select value from json_each(:ids))
