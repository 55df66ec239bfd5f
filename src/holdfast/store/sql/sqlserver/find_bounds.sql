-- The bounded ones of these queues.
select
    q.name,
    q.max_queued
from openjson(:queues) with (name nvarchar(1000) '$') as n
inner join holdfast_queues as q on q.name = n.name collate latin1_general_100_bin2
where q.max_queued is not null
