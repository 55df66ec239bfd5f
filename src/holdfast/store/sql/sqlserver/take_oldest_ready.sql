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
    deleted.reserved,
    chosen.concurrency
from (
    select top (coalesce(
        (
            select
                case
                    when q.paused_at is not null then 0
                    when q.concurrency is null then :limit
                    when q.concurrency <= (select count(*) from holdfast_leases as l where l.queue = :queue and l.place is not null) then 0
                    when q.concurrency - (select count(*) from holdfast_leases as l where l.queue = :queue and l.place is not null) < :limit then q.concurrency - (select count(*) from holdfast_leases as l where l.queue = :queue and l.place is not null)
                    else :limit
                end
            from holdfast_queues as q
            where q.name = :queue
        ),
        :limit
    ))
        oldest.run_id,
        (select q.concurrency from holdfast_queues as q where q.name = :queue) as concurrency
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
    order by oldest.run_id
) as chosen
inner join holdfast_ready as y with (rowlock) on y.run_id = chosen.run_id
option (force order, loop join)
