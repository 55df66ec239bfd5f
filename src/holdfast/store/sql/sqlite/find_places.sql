-- Which places of these queues are taken.
select
    queue,
    place
from holdfast_leases
where place is not null and queue in (select value from json_each(:queues))
