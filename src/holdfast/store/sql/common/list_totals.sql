-- What has been counted since the beginning.
select
    job,
    queue,
    state,
    runs,
    waited,
    ran
from holdfast_totals
order by
    job,
    queue,
    state
limit :limit
