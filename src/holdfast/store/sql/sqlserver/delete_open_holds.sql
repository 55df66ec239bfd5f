-- Holds that no one wants any more. A waiter that no one will look at again keeps its key's hold, even one whose look is
-- being cleared this moment: hence a locking read. One to be looked at is left out, as a caller's open transaction may
-- have put it there: looking opens the hold anew.
delete h
from openjson(:rows) with ([key] nvarchar(1000), number int) as k
inner join holdfast_holds as h with (rowlock)
    on h.[key] = k.[key] collate latin1_general_100_bin2 and h.number = k.number
where
    h.run_id is null
    and not exists (
        select 1
        from holdfast_waits as w with (readcommittedlock)
        where
            w.[key] = h.[key]
            and w.[key] is not null
            and w.missing = 0
            and w.due_at is null
            and w.look = 0
            and w.key_limit >= h.number
    )
option (force order, loop join)
