-- End runs.
insert into holdfast_outcomes (
    run_id,
    state,
    failure_type,
    error,
    result,
    attempt,
    tries,
    takeovers,
    holder,
    started_at,
    finished_at,
    seal
)
select
    r.run_id,
    r.state,
    r.failure_type,
    r.error,
    r.result,
    r.attempt,
    r.tries,
    r.takeovers,
    r.holder,
    r.started_at,
    :now,
    r.seal
from openjson(:rows) with (
    run_id varchar(100),
    state nvarchar(1000),
    failure_type nvarchar(max),
    error nvarchar(max),
    result nvarchar(max),
    attempt int,
    tries int,
    takeovers int,
    holder nvarchar(1000),
    started_at datetime2(6),
    seal nvarchar(1000)
) as r
