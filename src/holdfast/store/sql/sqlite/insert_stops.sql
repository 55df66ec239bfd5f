-- These ended badly; those that have children are to take them along.
insert into holdfast_stops (
    parent_id,
    because,
    since_at
)
select
    value ->> 'parent_id',
    value ->> 'because',
    :now
from json_each(:rows)
where exists (select 1 from holdfast_runs as c where c.parent_id = value ->> 'parent_id')
on conflict do nothing
