-- For each of these open holds the oldest due waiters that may have it and have none yet (who keeps its key does), as
-- many as holds of its key are open. One to be looked at that is locked may not be committed yet (a caller's open
-- transaction put it there) and is passed by; any other is waited for, so that no younger one goes first.
select
    k.[key],
    k.number,
    c.run_id
from openjson(:rows) with ([key] nvarchar(1000), number int, opens int) as k
cross apply (
    select top (k.opens) d.run_id
    from (
        select x.run_id
        from (
            select top (k.opens) w.run_id
            from holdfast_waits as w with (readcommittedlock)
            where
                w.[key] = k.[key] collate latin1_general_100_bin2
                and w.[key] is not null
                and w.missing = 0
                and (w.due_at is null or w.due_at <= :now)
                and w.look = 0
                and w.key_limit >= k.number
                and not exists (select 1 from holdfast_holds as h where h.run_id = w.run_id)
            order by w.run_id
        ) as x
        union all
        select y.run_id
        from (
            select top (k.opens) w.run_id
            from holdfast_waits as w with (readpast, readcommittedlock)
            where
                w.[key] = k.[key] collate latin1_general_100_bin2
                and w.[key] is not null
                and w.missing = 0
                and (w.due_at is null or w.due_at <= :now)
                and w.look = 1
                and w.key_limit >= k.number
                and not exists (select 1 from holdfast_holds as h where h.run_id = w.run_id)
            order by w.run_id
        ) as y
    ) as d
    order by d.run_id
) as c
order by k.[key], k.number, c.run_id
