-- What operators did, the newest first; what an open transaction writes is passed by.
select top (:limit)
    id,
    run_id,
    data,
    happened_at
from holdfast_events with (readpast, readcommittedlock)
where kind = 'OPERATED' and id < :before
order by id desc
