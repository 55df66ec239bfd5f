-- What these runs have made others do: stages, segments, children; and how that stands.
select
    r.id,
    r.parent_id,
    r.audit,
    o.state,
    o.finished_at
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as r on r.parent_id = k.id collate latin1_general_100_bin2
left join holdfast_outcomes as o on o.run_id = r.id
where r.parent_id is not null
