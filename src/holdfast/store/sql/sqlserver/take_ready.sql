-- Claim, first half: the highest priority first, then the oldest. The gate is the delete: whoever else chose the same
-- row finds it gone.
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
        c.run_id,
        (select q.concurrency from holdfast_queues as q where q.name = :queue) as concurrency
    from holdfast_ready as c with (readpast, updlock, readcommittedlock)
    where
        c.queue = :queue
        and c.rank >= :floor_rank
        and (c.rank > :floor_rank or c.run_id >= :floor_id)
        and c.job in (select j.name collate latin1_general_100_bin2 from openjson(:jobs) with (name nvarchar(1000) '$') as j)
    order by c.rank, c.run_id
) as chosen
inner join holdfast_ready as y with (rowlock) on y.run_id = chosen.run_id
option (force order, loop join)
