-- How many runs of each queue are running: never more than the workers have places.
select
    queue,
    count(*) as runs
from holdfast_leases
group by queue
