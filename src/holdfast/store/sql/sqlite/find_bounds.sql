-- The bounded ones of these queues.
select
    name,
    max_queued
from holdfast_queues
where max_queued is not null and name in (select value from json_each(:queues))
