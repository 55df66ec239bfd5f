-- Claim, first half, by age alone, so that priority starves no one.
delete from holdfast_ready
where run_id in (
    select run_id
    from (
        select run_id
        from (
            select y.run_id
            from holdfast_ready as y
            where y.queue = :queue and y.rank = 0 and y.job in (select value from json_each(:jobs))
            order by y.run_id
            limit :limit
        )
        union all
        select run_id
        from (
            select y.run_id
            from holdfast_ready as y
            where y.queue = :queue and y.rank <> 0 and y.job in (select value from json_each(:jobs))
            order by y.run_id
            limit :limit
        )
    )
    order by run_id
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
