-- These needs are met; each comes back to whoever removed it, and to no one else.
delete n
output
    deleted.needed,
    deleted.run_id
from openjson(:rows) with (needed varchar(100), run_id varchar(100)) as r
inner join holdfast_needs as n with (rowlock)
    on
        n.needed = r.needed collate latin1_general_100_bin2
        and n.run_id = r.run_id collate latin1_general_100_bin2
option (force order, loop join)
