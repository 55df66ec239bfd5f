-- What operators did, the newest first.
select
    id,
    run_id,
    data,
    happened_at
from holdfast_events
where kind = 'OPERATED' and id < :before
order by id desc
limit :limit
