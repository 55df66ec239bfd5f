-- What these runs made, or failed to make, is no build any more.
delete b
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_builds as b with (rowlock) on b.run_id = k.id collate latin1_general_100_bin2
option (force order, loop join)
