-- Go on counting spans of time.
update t
set
    runs = r.runs,
    waited = r.waited,
    ran = r.ran
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
inner join holdfast_tallies as t with (rowlock)
    on
        t.grain = r.grain
        and t.job = r.job collate latin1_general_100_bin2
        and t.queue = r.queue collate latin1_general_100_bin2
        and t.since_at = r.since_at
        and t.state = r.state collate latin1_general_100_bin2
option (force order, loop join)
