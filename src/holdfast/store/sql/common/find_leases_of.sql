-- What this worker holds, as the database sees it.
select run_id, job, queue, rank, key, attempt, tries, takeovers, key_limit, number, place, holder, started_at, expires_at, deadline_at, cancel_requested_at, cancel_reason, expired_seen_at
from holdfast_leases
where holder = :holder
order by run_id
