-- Ask a live worker to claim no more, finish and end; the first time counts.
update holdfast_workers
set drain_at = coalesce(drain_at, :now)
where id = :id and expires_at > :now
