-- The oldest due waiter of each of these keys. One to be looked at that is locked may not be committed yet (a caller's
-- open transaction put it there) and is passed by; any other is waited for, so that no younger one goes first.
select
    k.[key],
    (
        select min(c.run_id)
        from (
            select min(w.run_id) as run_id
            from holdfast_waits as w with (readcommittedlock)
            where
                w.[key] = k.[key] collate latin1_general_100_bin2
                and w.[key] is not null
                and w.missing = 0
                and (w.due_at is null or w.due_at <= :now)
                and w.look = 0
            union all
            select min(w.run_id) as run_id
            from holdfast_waits as w with (readpast, readcommittedlock)
            where
                w.[key] = k.[key] collate latin1_general_100_bin2
                and w.[key] is not null
                and w.missing = 0
                and (w.due_at is null or w.due_at <= :now)
                and w.look = 1
        ) as c
    ) as run_id
from openjson(:ids) with ([key] nvarchar(1000) '$') as k
