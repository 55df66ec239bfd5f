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
    r.run_id,
    r.number,
    r.job,
    r.scope,
    r.fingerprint,
    r.must_succeed,
    r.submission
from openjson(:rows) with (
    run_id varchar(100),
    number int,
    job nvarchar(1000),
    scope nvarchar(1000),
    fingerprint varchar(1000),
    must_succeed int,
    submission nvarchar(max)
) as r
