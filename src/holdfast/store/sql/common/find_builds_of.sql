-- Builds of one job and one fingerprint, and the build that this run makes.
select
    job,
    scope,
    fingerprint
from holdfast_builds
where (job = :job and fingerprint = :fingerprint) or run_id = :run_id
