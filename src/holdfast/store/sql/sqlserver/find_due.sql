-- Runs whose time has come. The update changes nothing: it holds them still until this transaction ends.
update w
set look = w.look
output
    inserted.run_id,
    inserted.[key]
from (
    select top (:limit) d.run_id
    from holdfast_waits as d with (readpast, updlock, readcommittedlock)
    where d.due_at <= :now and d.due_at is not null and d.missing = 0
    order by d.due_at
) as chosen
inner join holdfast_waits as w with (rowlock) on w.run_id = chosen.run_id
where w.due_at <= :now and w.missing = 0
option (force order, loop join)
