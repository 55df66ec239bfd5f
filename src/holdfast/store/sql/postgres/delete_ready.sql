-- These runs may not be claimed any more: the rows that come back are ours to move.
delete from holdfast_ready
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
returning run_id, job, queue, rank, key, attempt, tries, takeovers, key_limit, number, reserved
