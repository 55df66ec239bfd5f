-- What has been counted of these jobs and queues.
select
    t.job,
    t.queue,
    t.state,
    t.runs,
    t.waited,
    t.ran
from openjson(:rows) with (
    job nvarchar(1000),
    queue nvarchar(1000),
    state nvarchar(1000)
) as r
inner loop join holdfast_totals as t
    on
        t.job = r.job collate latin1_general_100_bin2
        and t.queue = r.queue collate latin1_general_100_bin2
        and t.state = r.state collate latin1_general_100_bin2
