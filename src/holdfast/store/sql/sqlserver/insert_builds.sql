-- Builds that no one has asked for before; each comes back to whoever is to make it. (Two who insert one at the same
-- time: the second is refused, and asks again.)
insert into holdfast_builds (
    job,
    scope,
    fingerprint,
    run_id,
    since_at
)
output
    inserted.job,
    inserted.scope,
    inserted.fingerprint
select
    r.job,
    r.scope,
    r.fingerprint,
    r.run_id,
    r.since_at
from openjson(:rows) with (
    job nvarchar(1000),
    scope nvarchar(1000),
    fingerprint varchar(1000),
    run_id varchar(100),
    since_at datetime2(6)
) as r
where not exists (
    select 1
    from holdfast_builds as b
    where
        b.job = r.job collate latin1_general_100_bin2
        and b.scope = r.scope collate latin1_general_100_bin2
        and b.fingerprint = r.fingerprint collate latin1_general_100_bin2
)
order by
    r.job collate latin1_general_100_bin2,
    r.scope collate latin1_general_100_bin2,
    r.fingerprint collate latin1_general_100_bin2
