-- How many seats of these queues are taken.
select
    queue,
    count(*) as seats
from holdfast_seats
where queue in (select value from json_each(:queues))
group by queue
