-- How much each worker has in hand.
select
    holder,
    count(*) as held
from holdfast_leases
group by holder
