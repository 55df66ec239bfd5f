-- These runs ask for nothing any more.
delete a
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_asks as a with (rowlock) on a.run_id = k.id collate latin1_general_100_bin2
option (force order, loop join)
