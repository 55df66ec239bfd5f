-- How many ready runs of the queue go before this one.
select count(*) as ahead
from holdfast_ready as y
inner join holdfast_ready as me on me.run_id = :run_id
where y.queue = :queue and (y.rank < me.rank or (y.rank = me.rank and y.run_id < me.run_id))
