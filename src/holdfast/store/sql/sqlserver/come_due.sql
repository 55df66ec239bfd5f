-- Keyed runs whose time has come: from now on they wait for their turn only.
update w
set
    due_at = null,
    look = 1
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_waits as w with (rowlock) on w.run_id = k.id collate latin1_general_100_bin2
option (force order, loop join)
