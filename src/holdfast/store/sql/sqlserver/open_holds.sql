-- These runs have had their turn.
update h
set run_id = null
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_holds as h with (rowlock) on h.run_id = k.id collate latin1_general_100_bin2 and h.run_id is not null
option (force order, loop join)
