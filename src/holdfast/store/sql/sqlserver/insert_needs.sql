-- What runs need to have ended.
insert into holdfast_needs (
    needed,
    run_id,
    must_succeed
)
select
    r.needed,
    r.run_id,
    r.must_succeed
from openjson(:rows) with (
    needed varchar(100),
    run_id varchar(100),
    must_succeed int
) as r
