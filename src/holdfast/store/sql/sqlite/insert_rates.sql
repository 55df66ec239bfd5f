-- Rows of a rate that no one has used yet.
insert into holdfast_rates (name, number, turn)
select
    value ->> 'name',
    value ->> 'number',
    0
from json_each(:rows)
where true
on conflict do nothing
