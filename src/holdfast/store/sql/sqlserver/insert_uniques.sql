-- Be the only run of a kind; where there has been one, the row is left out.
insert into holdfast_uniques (job, digest, run_id)
output inserted.run_id
select
    r.job,
    r.digest,
    r.run_id
from openjson(:rows) with (job nvarchar(1000), digest varchar(200), run_id varchar(100)) as r
where not exists (
    select 1
    from holdfast_uniques as u
    where
        u.job = r.job collate latin1_general_100_bin2
        and u.digest = r.digest collate latin1_general_100_bin2
)
order by r.job, r.digest
