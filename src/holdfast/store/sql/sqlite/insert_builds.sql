-- Builds that no one has asked for before; each comes back to whoever is to make it.
insert into holdfast_builds (
    job,
    scope,
    fingerprint,
    run_id,
    since_at
)
select
    value ->> 'job',
    value ->> 'scope',
    value ->> 'fingerprint',
    value ->> 'run_id',
    value ->> 'since_at'
from json_each(:rows)
where true
on conflict do nothing
returning job, scope, fingerprint
