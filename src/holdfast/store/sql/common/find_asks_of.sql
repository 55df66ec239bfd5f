-- The builds that a run asks for and that no orchestrator has given it yet.
select
    job,
    scope,
    fingerprint
from holdfast_asks
where run_id = :run_id
order by number
