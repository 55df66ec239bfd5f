-- What has been counted of these spans of time.
select
    t.grain,
    t.job,
    t.queue,
    t.since_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from openjson(:rows) with (
    grain int,
    job nvarchar(1000),
    queue nvarchar(1000),
    since_at datetime2(6),
    state nvarchar(1000)
) as r
inner loop join holdfast_tallies as t
    on
        t.grain = r.grain
        and t.job = r.job collate latin1_general_100_bin2
        and t.queue = r.queue collate latin1_general_100_bin2
        and t.since_at = r.since_at
        and t.state = r.state collate latin1_general_100_bin2
