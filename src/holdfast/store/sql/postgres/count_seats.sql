-- How many seats of these queues are taken.
select
    queue,
    count(*) as seats
from holdfast_seats
where queue = any (array(select json_array_elements_text(cast(:queues as json))))
group by queue
