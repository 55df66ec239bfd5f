-- What no row proves, counted.
select
    name,
    label,
    value
from holdfast_counters
order by
    name,
    label
limit :limit
