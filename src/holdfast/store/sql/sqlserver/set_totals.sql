-- Go on counting jobs and queues.
update t
set
    runs = r.runs,
    waited = r.waited,
    ran = r.ran
from openjson(:rows) with (
    job nvarchar(1000),
    queue nvarchar(1000),
    state nvarchar(1000),
    runs bigint,
    waited nvarchar(max),
    ran nvarchar(max)
) as r
inner join holdfast_totals as t with (rowlock)
    on
        t.job = r.job collate latin1_general_100_bin2
        and t.queue = r.queue collate latin1_general_100_bin2
        and t.state = r.state collate latin1_general_100_bin2
option (force order, loop join)
