-- What runs now, and on which worker.
select
    run_id,
    job,
    queue,
    key,
    attempt,
    holder,
    started_at,
    expires_at,
    deadline_at,
    cancel_requested_at
from holdfast_leases
order by
    holder,
    run_id
limit :limit
