-- Which places of these queues are taken.
select
    l.queue,
    l.place
from holdfast_leases as l
where
    l.place is not null
    and l.queue in (select n.name collate latin1_general_100_bin2 from openjson(:queues) with (name nvarchar(1000) '$') as n)
