-- Where what will be recorded from now on begins.
select
    0 as tx,
    coalesce(max(id), 0) as id
from holdfast_events
