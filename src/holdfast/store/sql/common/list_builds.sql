-- The newest makings first.
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
where
    run_id < :before
    and (cast(:state as varchar(20)) is null or state = :state)
    and (cast(:job as varchar(200)) is null or job = :job)
    and (cast(:scope as varchar(400)) is null or scope = :scope)
    and (cast(:fingerprint as varchar(128)) is null or fingerprint = :fingerprint)
order by run_id desc
limit :limit
