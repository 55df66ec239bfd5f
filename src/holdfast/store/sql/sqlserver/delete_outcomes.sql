-- How these runs ended is no longer kept; refused unless the gate is open.
delete t
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_outcomes as t with (rowlock) on t.run_id = k.id collate latin1_general_100_bin2
option (force order, loop join)
