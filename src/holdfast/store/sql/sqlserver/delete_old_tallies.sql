-- What was counted long ago is no longer kept.
delete t
from (
    select top (:limit) o.grain, o.job, o.queue, o.since_at, o.state
    from holdfast_tallies as o with (updlock, readpast, readcommittedlock)
    where o.grain = :grain and o.since_at < :before
    order by o.since_at
) as old
inner join holdfast_tallies as t with (rowlock)
    on
        t.grain = old.grain
        and t.job = old.job
        and t.queue = old.queue
        and t.since_at = old.since_at
        and t.state = old.state
option (force order, loop join)
