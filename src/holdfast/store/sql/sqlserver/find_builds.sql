-- These builds, and how the run of each ended, if it has.
select
    b.job,
    b.scope,
    b.fingerprint,
    b.run_id,
    b.stale_at,
    r.id as known,
    o.state
from openjson(:rows) with (job nvarchar(1000), scope nvarchar(1000), fingerprint varchar(1000)) as k
inner join holdfast_builds as b
    on
        b.job = k.job collate latin1_general_100_bin2
        and b.scope = k.scope collate latin1_general_100_bin2
        and b.fingerprint = k.fingerprint collate latin1_general_100_bin2
left join holdfast_runs as r on r.id = b.run_id
left join holdfast_outcomes as o on o.run_id = b.run_id
