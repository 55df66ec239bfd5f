-- Let runs wait.
insert into holdfast_waits (
    run_id,
    job,
    queue,
    rank,
    [key],
    attempt,
    tries,
    takeovers,
    missing,
    due_at,
    because,
    look,
    since_at
)
select
    r.run_id,
    r.job,
    r.queue,
    r.rank,
    r.[key],
    r.attempt,
    r.tries,
    r.takeovers,
    r.missing,
    r.due_at,
    r.because,
    r.look,
    r.since_at
from openjson(:rows) with (
    run_id varchar(100),
    job nvarchar(1000),
    queue nvarchar(1000),
    rank int,
    [key] nvarchar(1000),
    attempt int,
    tries int,
    takeovers int,
    missing int,
    due_at datetime2(6),
    because nvarchar(max),
    look int,
    since_at datetime2(6)
) as r
