-- The oldest events of no run in particular are no longer kept.
delete e
from (
    select top (:limit) d.id
    from holdfast_events as d with (readpast, readcommittedlock)
    where d.run_id is null
    order by d.id
) as chosen
inner join holdfast_events as e with (rowlock) on e.id = chosen.id
where e.happened_at < :before
option (force order, loop join)
