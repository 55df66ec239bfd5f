-- What runs need to have ended.
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
