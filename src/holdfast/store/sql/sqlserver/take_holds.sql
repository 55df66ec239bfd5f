-- Take free keys that only one run may hold. A key that a due run waits for is not free: that run is older. (As in find_turns, a waiter that may
-- not be committed yet is passed by.)
insert into holdfast_holds ([key], number, run_id)
output inserted.run_id
select
    r.[key],
    1,
    r.run_id
from (
    select
        s.[key] collate latin1_general_100_bin2 as [key],
        s.run_id,
        row_number() over (
            partition by s.[key] collate latin1_general_100_bin2
            order by s.run_id collate latin1_general_100_bin2
        ) as turn
    from openjson(:rows) with ([key] nvarchar(1000), run_id varchar(100)) as s
) as r
where
    r.turn = 1
    and not exists (select 1 from holdfast_holds as h where h.[key] = r.[key])
    and not exists (
        select 1
        from holdfast_waits as w with (readcommittedlock)
        where
            w.[key] = r.[key]
            and w.[key] is not null
            and w.missing = 0
            and w.look = 0
            and (w.due_at is null or w.due_at <= :now)
    )
    and not exists (
        select 1
        from holdfast_waits as w with (readpast, readcommittedlock)
        where
            w.[key] = r.[key]
            and w.[key] is not null
            and w.missing = 0
            and w.look = 1
            and (w.due_at is null or w.due_at <= :now)
    )
order by r.[key]
