-- These runs need nothing any more.
delete n
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_needs as n with (rowlock) on n.run_id = k.id collate latin1_general_100_bin2
option (force order, loop join)
