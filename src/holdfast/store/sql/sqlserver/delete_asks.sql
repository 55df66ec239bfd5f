-- These asks have their build; each comes back to whoever removed it, and to no one else.
delete a
output
    deleted.run_id,
    deleted.number
from openjson(:rows) with (run_id varchar(100), number int) as r
inner join holdfast_asks as a with (rowlock)
    on a.run_id = r.run_id collate latin1_general_100_bin2 and a.number = r.number
option (force order, loop join)
