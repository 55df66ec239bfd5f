-- What runs need to have ended, where they do not need it already.
insert into holdfast_needs (
    needed,
    run_id,
    must_succeed
)
select
    needed,
    run_id,
    must_succeed
from json_to_recordset(cast(:rows as json)) as r (needed text, run_id text, must_succeed integer)
order by
    needed,
    run_id
on conflict do nothing
returning needed, run_id
