-- Which places of these queues are taken.
select
    queue,
    place
from holdfast_leases
where place is not null and queue = any (array(select json_array_elements_text(cast(:queues as json))))
