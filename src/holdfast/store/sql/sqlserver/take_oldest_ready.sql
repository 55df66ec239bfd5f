-- Claim, first half, by age alone, so that priority starves no one.
delete y
output
    deleted.run_id,
    deleted.job,
    deleted.queue,
    deleted.rank,
    deleted.[key],
    deleted.attempt,
    deleted.tries,
    deleted.takeovers,
    deleted.key_limit,
    deleted.number,
    deleted.reserved
from (
    select top (:limit) oldest.run_id
    from (
        select plain.run_id
        from (
            select top (:limit) c.run_id
            from holdfast_ready as c with (readpast, updlock, readcommittedlock)
            where c.queue = :queue and c.rank = 0 and c.job in (select j.name collate latin1_general_100_bin2 from openjson(:jobs) with (name nvarchar(1000) '$') as j)
            order by c.run_id
        ) as plain
        union all
        select ranked.run_id
        from (
            select top (:limit) c.run_id
            from holdfast_ready as c with (readpast, updlock, readcommittedlock)
            where c.queue = :queue and c.rank <> 0 and c.job in (select j.name collate latin1_general_100_bin2 from openjson(:jobs) with (name nvarchar(1000) '$') as j)
            order by c.run_id
        ) as ranked
    ) as oldest
    where not exists (select 1 from holdfast_queues as q where q.name = :queue and q.paused_at is not null)
    order by oldest.run_id
) as chosen
inner join holdfast_ready as y with (rowlock) on y.run_id = chosen.run_id
option (force order, loop join)
