-- Runs that ended badly and whose children are yet to be stopped.
select
    parent_id,
    because
from holdfast_stops
order by parent_id
limit :limit
for update skip locked
