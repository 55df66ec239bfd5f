-- What these runs have forgotten is no longer kept, either.
delete t
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_forgotten as t with (rowlock) on t.run_id = k.id collate latin1_general_100_bin2
option (force order, loop join)
