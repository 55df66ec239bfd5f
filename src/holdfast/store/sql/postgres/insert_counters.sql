-- Counters that no one has used yet begin at nothing.
insert into holdfast_counters (name, label, value)
select
    name,
    label,
    0
from json_to_recordset(cast(:rows as json)) as r (name text, label text)
order by name, label
on conflict do nothing
