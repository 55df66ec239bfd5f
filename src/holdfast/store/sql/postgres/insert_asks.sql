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
    run_id,
    number,
    job,
    scope,
    fingerprint,
    must_succeed,
    submission
from json_to_recordset(cast(:rows as json)) as r (run_id text, number integer, job text, scope text, fingerprint text, must_succeed integer, submission text)
