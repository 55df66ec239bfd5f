-- Forget a step: the row that comes back is ours to move.
delete from holdfast_steps
output
    deleted.name,
    deleted.attempt,
    deleted.tries,
    deleted.started_at,
    deleted.finished_at,
    deleted.number
where
    run_id = :run_id
    and name = :name
