-- These runs are no longer kept.
delete t
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as t with (rowlock) on t.id = k.id collate latin1_general_100_bin2
option (force order, loop join)
