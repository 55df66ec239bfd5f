-- Of these runs, those that wait for nothing: they are ours to move.
delete from holdfast_waits
where
    run_id = any (array(select json_array_elements_text(cast(:ids as json))))
    and missing = 0
    and due_at is null
    and key is null
    and errand is null
returning run_id, job, queue, rank, key, attempt, tries, takeovers, key_limit, reserved, missing, due_at, because, look, since_at
