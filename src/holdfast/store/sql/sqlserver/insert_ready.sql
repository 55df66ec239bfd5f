-- Let runs be claimed.
insert into holdfast_ready (
    run_id,
    job,
    queue,
    rank,
    [key],
    attempt,
    tries,
    takeovers
)
select
    r.run_id,
    r.job,
    r.queue,
    r.rank,
    r.[key],
    r.attempt,
    r.tries,
    r.takeovers
from openjson(:rows) with (
    run_id varchar(100),
    job nvarchar(4000),
    queue nvarchar(4000),
    rank int,
    [key] nvarchar(4000),
    attempt int,
    tries int,
    takeovers int
) as r
