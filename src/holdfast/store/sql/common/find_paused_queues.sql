-- Which queues are paused.
select name
from holdfast_queues
where paused_at is not null
order by name
