-- Let another run make these builds, if the one that we saw still stands there; each comes back to whoever replaced it.
update holdfast_builds
set
    run_id = r.value ->> 'run_id',
    stale_at = null,
    because = null,
    since_at = r.value ->> 'since_at'
from json_each(:rows) as r
where
    holdfast_builds.job = r.value ->> 'job'
    and holdfast_builds.scope = r.value ->> 'scope'
    and holdfast_builds.fingerprint = r.value ->> 'fingerprint'
    and holdfast_builds.run_id = r.value ->> 'old_id'
returning job, scope, fingerprint
