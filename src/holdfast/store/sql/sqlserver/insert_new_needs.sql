-- What runs need to have ended, where they do not need it already.
insert into holdfast_needs (
    needed,
    run_id,
    must_succeed
)
output
    inserted.needed,
    inserted.run_id
select
    r.needed,
    r.run_id,
    r.must_succeed
from openjson(:rows) with (
    needed varchar(100),
    run_id varchar(100),
    must_succeed int
) as r
where not exists (
    select 1
    from holdfast_needs as n
    where
        n.needed = r.needed collate latin1_general_100_bin2
        and n.run_id = r.run_id collate latin1_general_100_bin2
)
