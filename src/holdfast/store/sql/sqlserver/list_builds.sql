-- The newest makings first.
select top (:limit)
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
where
    run_id < :before
    and (cast(:state as nvarchar(200)) is null or state = :state)
    and (cast(:job as nvarchar(1000)) is null or job = :job)
    and (cast(:scope as nvarchar(1000)) is null or scope = :scope)
    and (cast(:fingerprint as nvarchar(1000)) is null or fingerprint = :fingerprint)
order by run_id desc
