-- A build by its identity.
select
    job,
    scope,
    fingerprint,
    run_id,
    state,
    stale_at,
    because,
    since_at,
    holder,
    started_at,
    finished_at,
    failure_type,
    error,
    result,
    waiting
from holdfast_build
where job = :job and scope = :scope and fingerprint = :fingerprint
