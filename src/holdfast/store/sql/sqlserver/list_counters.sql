-- What no row proves, counted.
select top (:limit)
    name,
    label,
    value
from holdfast_counters
order by
    name,
    label
