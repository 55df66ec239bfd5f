-- The newest runs first.
where
    v.id < :before
    and (cast(:state as varchar(20)) is null or v.state = :state)
    and (cast(:job as varchar(200)) is null or v.job = :job)
    and (cast(:queue as varchar(200)) is null or v.queue = :queue)
order by v.id desc
limit :limit
