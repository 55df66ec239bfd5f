-- The rows of these rates, held still: one claim at a time judges by them.
select
    name,
    number,
    turn,
    started_at
from holdfast_rates
where name = any (array(select json_array_elements_text(cast(:names as json))))
order by name, number
for update
