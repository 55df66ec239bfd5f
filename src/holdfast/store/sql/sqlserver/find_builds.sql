-- These builds, and how the run of each ended, if it has. `cancelled_id` is the newest of its runs that was cancelled: this
-- one, or the one that it replaced.
select
    b.job,
    b.scope,
    b.fingerprint,
    b.run_id,
    b.stale_at,
    r.id as known,
    o.state,
    c.run_id as cancelled_id,
    c.finished_at as cancelled_at
from openjson(:rows) with (job nvarchar(1000), scope nvarchar(1000), fingerprint varchar(1000)) as k
inner join holdfast_builds as b
    on
        b.job = k.job collate latin1_general_100_bin2
        and b.scope = k.scope collate latin1_general_100_bin2
        and b.fingerprint = k.fingerprint collate latin1_general_100_bin2
left join holdfast_runs as r on r.id = b.run_id
left join holdfast_outcomes as o on o.run_id = b.run_id
left join holdfast_outcomes as c
    on
        c.run_id = case when o.state = 'cancelled' then b.run_id else r.again_of end
        and c.state = 'cancelled'
