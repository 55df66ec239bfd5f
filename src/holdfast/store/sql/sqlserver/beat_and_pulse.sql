-- An idle worker is alive; no row: it has been declared dead. `output` takes no subquery, so the pulse is asked apart.
update holdfast_workers
set
    seen_at = :now,
    expires_at = :expires_at
output inserted.id
where id = :holder and :queues is not null and :jobs is not null
