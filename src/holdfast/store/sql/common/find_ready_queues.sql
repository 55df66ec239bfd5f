-- The queues that something is ready in.
select distinct queue
from holdfast_ready
order by queue
