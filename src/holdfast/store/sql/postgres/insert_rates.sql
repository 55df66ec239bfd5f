-- Rows of a rate that no one has used yet.
insert into holdfast_rates (name, number, turn)
select
    name,
    number,
    0
from json_to_recordset(cast(:rows as json)) as r (name text, number integer)
order by name, number
on conflict do nothing
