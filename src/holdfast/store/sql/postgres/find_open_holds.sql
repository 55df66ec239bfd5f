-- Holds between two turns.
select
    key,
    number
from holdfast_holds
where run_id is null
order by key, number
limit :limit
for update skip locked
