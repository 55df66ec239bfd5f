-- These runs wait no longer: the rows that come back are ours to move.
delete from holdfast_waits
where run_id in (select value from json_each(:ids))
returning run_id, job, queue, rank, key, attempt, tries, takeovers, key_limit, reserved, missing, due_at, because, look, since_at
