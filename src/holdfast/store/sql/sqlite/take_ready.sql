-- Claim, first half: the highest priority first, then the oldest.
delete from holdfast_ready
where run_id in (
    select y.run_id
    from holdfast_ready as y
    where
        y.queue = :queue
        and (y.rank, y.run_id) >= (:floor_rank, :floor_id)
        and y.job in (select value from json_each(:jobs))
        and not exists (select 1 from holdfast_queues as q where q.name = :queue and q.paused_at is not null)
    order by y.rank, y.run_id
    limit :limit
)
returning run_id, job, queue, rank, key, attempt, tries, takeovers, key_limit, number, reserved
