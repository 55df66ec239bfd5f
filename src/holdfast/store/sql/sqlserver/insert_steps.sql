-- Remember finished steps.
insert into holdfast_steps (
    run_id,
    name,
    result,
    attempt,
    tries,
    started_at,
    finished_at,
    number
)
select
    r.run_id,
    r.name,
    r.result,
    r.attempt,
    r.tries,
    r.started_at,
    r.finished_at,
    r.number
from openjson(:rows) with (
    run_id varchar(100),
    name nvarchar(1000),
    result nvarchar(max),
    attempt int,
    tries int,
    started_at datetime2(6),
    finished_at datetime2(6),
    number int
) as r
