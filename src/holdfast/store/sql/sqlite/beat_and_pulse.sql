-- An idle worker is alive; no row: it has been declared dead. SQLite 3.40 evaluates some expressions in `returning`
-- wrongly, so the pulse is asked apart.
update holdfast_workers
set
    seen_at = :now,
    expires_at = :expires_at
where id = :holder and :queues is not null and :jobs is not null
returning id
