-- A worker is alive.
update holdfast_workers
set
    seen_at = :now,
    expires_at = :expires_at,
    stopping = :stopping
where id = :id
