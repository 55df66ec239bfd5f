-- What runs need to have ended, where they do not need it already.
insert into holdfast_needs (
    needed,
    run_id,
    must_succeed
)
select
    value ->> 'needed',
    value ->> 'run_id',
    value ->> 'must_succeed'
from json_each(:rows)
where true
on conflict do nothing
returning needed, run_id
