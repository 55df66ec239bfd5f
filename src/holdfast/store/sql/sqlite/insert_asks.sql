-- Builds that runs of a caller's transaction need, for an orchestrator to get or create.
insert into holdfast_asks (
    run_id,
    number,
    job,
    scope,
    fingerprint,
    must_succeed,
    submission
)
select
    value ->> 'run_id',
    value ->> 'number',
    value ->> 'job',
    value ->> 'scope',
    value ->> 'fingerprint',
    value ->> 'must_succeed',
    value ->> 'submission'
from json_each(:rows)
where true
