-- These needs must end well, though it was first said that they need not.
update n
set must_succeed = 1
from openjson(:rows) with (needed varchar(100), run_id varchar(100)) as r
inner join holdfast_needs as n with (rowlock)
    on
        n.needed = r.needed collate latin1_general_100_bin2
        and n.run_id = r.run_id collate latin1_general_100_bin2
where n.must_succeed = 0
option (force order, loop join)
