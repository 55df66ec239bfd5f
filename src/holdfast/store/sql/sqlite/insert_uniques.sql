-- Be the only run of a kind; where there has been one, the row is left out.
insert into holdfast_uniques (job, digest, run_id)
select
    value ->> 'job',
    value ->> 'digest',
    value ->> 'run_id'
from json_each(:rows)
where true
on conflict do nothing
returning run_id
