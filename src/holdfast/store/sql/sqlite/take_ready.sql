-- Claim, first half: the highest priority first, then the oldest; no more than the queue has places free.
delete from holdfast_ready
where run_id in (
    select y.run_id
    from holdfast_ready as y
    where
        y.queue = :queue
        and (y.rank, y.run_id) >= (:floor_rank, :floor_id)
        and y.job in (select value from json_each(:jobs))
    order by y.rank, y.run_id
    limit coalesce(
        (
            select
                case
                    when q.paused_at is not null then 0
                    when q.concurrency is null then :limit
                    else max(0, min(:limit, q.concurrency - (select count(*) from holdfast_leases as l where l.queue = :queue and l.place is not null)))
                end
            from holdfast_queues as q
            where q.name = :queue
        ),
        :limit
    )
)
returning
    run_id,
    job,
    queue,
    rank,
    key,
    attempt,
    tries,
    takeovers,
    key_limit,
    number,
    reserved
