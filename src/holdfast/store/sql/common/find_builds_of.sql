-- Builds of one job and one fingerprint.
select
    job,
    scope,
    fingerprint
from holdfast_builds
where job = :job and fingerprint = :fingerprint
