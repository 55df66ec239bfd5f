-- Builds that an orchestrator has yet to get or create.
select
    run_id,
    number,
    job,
    scope,
    fingerprint,
    must_succeed,
    submission
from holdfast_asks
order by
    run_id,
    number
limit :limit
