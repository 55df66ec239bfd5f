-- What was counted of these jobs and queues between two instants, the newest first.
select top (:limit)
    t.job,
    t.queue,
    t.since_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from openjson(:rows) with (job nvarchar(1000), queue nvarchar(1000)) as r
inner loop join holdfast_tallies as t
    on
        t.grain = :grain
        and t.job = r.job collate latin1_general_100_bin2
        and t.queue = r.queue collate latin1_general_100_bin2
        and t.since_at >= :since
        and t.since_at < :before
order by t.since_at desc
