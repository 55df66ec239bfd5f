-- A queue's limits, held still.
update holdfast_queues
set version = version + 1
output inserted.max_queued, inserted.concurrency, inserted.counted_at, inserted.declared
where name = :name
