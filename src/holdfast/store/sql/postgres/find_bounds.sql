-- The bounded ones of these queues.
select
    name,
    max_queued
from holdfast_queues
where max_queued is not null and name = any (array(select json_array_elements_text(cast(:queues as json))))
