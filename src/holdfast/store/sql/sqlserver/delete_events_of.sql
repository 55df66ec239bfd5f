-- Some of what happened to these runs is no longer kept.
delete top (:limit) e
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_events as e with (rowlock) on e.run_id = k.id collate latin1_general_100_bin2
option (force order, loop join)
