-- Keys between two turns.
select key
from holdfast_holds
where run_id is null
order by key
limit :limit
