-- How many seats of these queues are taken.
select
    s.queue,
    count(*) as seats
from holdfast_seats as s
where s.queue in (select n.name collate latin1_general_100_bin2 from openjson(:queues) with (name nvarchar(1000) '$') as n)
group by s.queue
