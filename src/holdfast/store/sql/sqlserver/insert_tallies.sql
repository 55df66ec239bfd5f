-- Begin to count spans of time.
insert into holdfast_tallies (
    grain,
    job,
    queue,
    since_at,
    state,
    runs,
    waited,
    ran
)
select
    r.grain,
    r.job,
    r.queue,
    r.since_at,
    r.state,
    r.runs,
    r.waited,
    r.ran
from openjson(:rows) with (
    grain int,
    job nvarchar(1000),
    queue nvarchar(1000),
    since_at datetime2(6),
    state nvarchar(1000),
    runs bigint,
    waited nvarchar(max),
    ran nvarchar(max)
) as r
