-- Builds that no one has asked for before; each comes back to whoever is to make it.
insert into holdfast_builds (
    job,
    scope,
    fingerprint,
    run_id,
    since_at
)
select
    job,
    scope,
    fingerprint,
    run_id,
    since_at
from json_to_recordset(cast(:rows as json)) as r (job text, scope text, fingerprint text, run_id text, since_at timestamptz)
order by
    job,
    scope,
    fingerprint
on conflict do nothing
returning job, scope, fingerprint
