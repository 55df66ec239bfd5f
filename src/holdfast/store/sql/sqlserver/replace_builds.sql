-- Let another run make these builds, if the one that we saw still stands there; each comes back to whoever replaced it.
update b
set
    run_id = r.run_id,
    stale_at = null,
    because = null,
    since_at = r.since_at
output
    inserted.job,
    inserted.scope,
    inserted.fingerprint
from openjson(:rows) with (
    job nvarchar(1000),
    scope nvarchar(1000),
    fingerprint varchar(1000),
    run_id varchar(100),
    old_id varchar(100),
    since_at datetime2(6)
) as r
inner join holdfast_builds as b with (rowlock)
    on
        b.job = r.job collate latin1_general_100_bin2
        and b.scope = r.scope collate latin1_general_100_bin2
        and b.fingerprint = r.fingerprint collate latin1_general_100_bin2
        and b.run_id = r.old_id collate latin1_general_100_bin2
option (force order, loop join)
