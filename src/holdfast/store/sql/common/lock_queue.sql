-- A queue's limits, held still.
update holdfast_queues
set version = version + 1
where name = :name
returning max_queued, concurrency, counted_at, declared
