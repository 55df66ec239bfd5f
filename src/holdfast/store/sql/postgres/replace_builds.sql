-- Let another run make these builds, if the one that we saw still stands there; each comes back to whoever replaced it.
with locked as (
    select
        b.job,
        b.scope,
        b.fingerprint,
        r.run_id,
        r.since_at
    from json_to_recordset(cast(:rows as json)) as r (job text, scope text, fingerprint text, run_id text, old_id text, since_at timestamptz)
    inner join holdfast_builds as b
        on
            b.job = r.job
            and b.scope = r.scope
            and b.fingerprint = r.fingerprint
            and b.run_id = r.old_id
    order by
        b.job,
        b.scope,
        b.fingerprint
    for update of b
)

update holdfast_builds as b
set
    run_id = locked.run_id,
    stale_at = null,
    because = null,
    since_at = locked.since_at
from locked
where b.job = locked.job and b.scope = locked.scope and b.fingerprint = locked.fingerprint
returning b.job, b.scope, b.fingerprint
