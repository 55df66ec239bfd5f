-- Waits that no orchestrator has looked at since they were committed.
select top (:limit)
    run_id,
    [key],
    key_limit,
    missing,
    due_at,
    errand
from holdfast_waits with (readpast, readcommittedlock)
where look = 1
order by run_id
