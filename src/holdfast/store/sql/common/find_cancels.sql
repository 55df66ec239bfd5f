-- Which of our runs were asked to stop.
select
    run_id,
    attempt,
    cancel_reason
from holdfast_leases
where holder = :holder and cancel_requested_at is not null
