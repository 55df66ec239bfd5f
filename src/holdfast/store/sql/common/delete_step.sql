-- Forget a step: the row that comes back is ours to move.
delete from holdfast_steps
where
    run_id = :run_id
    and name = :name
returning
    name,
    attempt,
    tries,
    started_at,
    finished_at,
    number
