-- How many seats are taken, queue by queue.
select
    queue,
    count(*) as seats
from holdfast_seats
group by queue
