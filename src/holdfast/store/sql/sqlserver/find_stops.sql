-- Runs that ended badly and whose children are yet to be stopped.
select top (:limit)
    parent_id,
    because
from holdfast_stops with (readpast, updlock, readcommittedlock)
order by parent_id
