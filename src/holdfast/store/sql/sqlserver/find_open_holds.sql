-- Holds between two turns. The update changes nothing: it holds them still until this transaction ends.
update h
set run_id = null
output
    inserted.[key],
    inserted.number
from (
    select top (:limit)
        o.[key],
        o.number
    from holdfast_holds as o with (readpast, updlock, readcommittedlock)
    where o.run_id is null
    order by o.[key], o.number
) as chosen
inner join holdfast_holds as h with (rowlock) on h.[key] = chosen.[key] and h.number = chosen.number
where h.run_id is null
option (force order, loop join)
