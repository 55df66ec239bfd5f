-- Builds that an orchestrator has yet to get or create.
select top (:limit)
    run_id,
    number,
    job,
    scope,
    fingerprint,
    must_succeed,
    submission
from holdfast_asks with (readpast, readcommittedlock)
order by
    run_id,
    number
