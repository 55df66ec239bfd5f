-- Hold these waits still until this transaction ends, by writing them as they are.
update w
set look = w.look
output inserted.run_id
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_waits as w with (rowlock) on w.run_id = k.id collate latin1_general_100_bin2
option (force order, loop join)
