-- Begin to count jobs and queues.
insert into holdfast_totals (
    job,
    queue,
    state,
    runs,
    waited,
    ran
)
select
    r.job,
    r.queue,
    r.state,
    r.runs,
    r.waited,
    r.ran
from openjson(:rows) with (
    job nvarchar(1000),
    queue nvarchar(1000),
    state nvarchar(1000),
    runs bigint,
    waited nvarchar(max),
    ran nvarchar(max)
) as r
