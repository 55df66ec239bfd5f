-- Give up our own leases: the rows that come back are ours to move, the others are lost.
delete from holdfast_leases
where
    holder = :holder
    and (run_id, attempt) in (select value ->> 'run_id', value ->> 'attempt' from json_each(:rows))
returning run_id, job, queue, rank, key, attempt, tries, takeovers, holder, started_at, expires_at, deadline_at, cancel_requested_at, cancel_reason
