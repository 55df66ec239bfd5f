-- Waits that no orchestrator has looked at since they were committed.
select
    run_id,
    key,
    key_limit,
    missing,
    due_at,
    errand
from holdfast_waits
where look = 1
order by run_id
limit :limit
