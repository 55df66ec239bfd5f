-- The rows of these rates; the writer's lock holds them still.
select
    name,
    number,
    turn,
    started_at
from holdfast_rates
where name in (select value from json_each(:names))
order by name, number
