-- Be the only run of a kind; where there has been one, the row is left out.
insert into holdfast_uniques (job, digest, run_id)
select
    job,
    digest,
    run_id
from json_to_recordset(cast(:rows as json)) as r (job text, digest text, run_id text)
order by job, digest
on conflict do nothing
returning run_id
