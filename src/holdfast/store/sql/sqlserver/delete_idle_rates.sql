-- Rates that no one uses any more. Who holds row 0 still has all rows of its rate.
delete r
from (
    select top (:limit) i.name
    from holdfast_rates as i with (updlock, readpast, readcommittedlock)
    where i.number = 0 and i.started_at < :before
    order by i.started_at
) as idle
inner join holdfast_rates as r with (rowlock) on r.name = idle.name
option (force order, loop join)
