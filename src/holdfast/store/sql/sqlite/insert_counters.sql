-- Counters that no one has used yet begin at nothing.
insert into holdfast_counters (name, label, value)
select
    value ->> 'name',
    value ->> 'label',
    0
from json_each(:rows)
where true
on conflict do nothing
