-- The bounded ones of these queues, held still: one submission at a time counts their seats.
update q
set version = q.version + 1
output inserted.name, inserted.max_queued
from openjson(:queues) with (name nvarchar(1000) '$') as n
inner join holdfast_queues as q with (rowlock) on q.name = n.name collate latin1_general_100_bin2
where q.max_queued is not null
option (force order, loop join)
