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
    where not exists (select 1 from holdfast_queues as q where q.name = :queue and q.paused_at is not null)
    order by run_id
    limit :limit
)
returning run_id, job, queue, rank, key, attempt, tries, takeovers, key_limit, number, reserved
