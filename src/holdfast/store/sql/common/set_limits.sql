-- How many runs of this queue may be queued or running, and how many may run at once.
update holdfast_queues
set
    max_queued = :max_queued,
    concurrency = :concurrency,
    counted_at = :counted_at,
    declared = :declared,
    version = version + 1
where name = :name
