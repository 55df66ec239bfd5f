-- These ended badly; those that have children are to take them along.
insert into holdfast_stops (
    parent_id,
    because,
    since_at
)
select
    r.parent_id,
    r.because,
    :now
from json_to_recordset(cast(:rows as json)) as r (parent_id text, because text)
where exists (select 1 from holdfast_runs as c where c.parent_id = r.parent_id)
on conflict do nothing
