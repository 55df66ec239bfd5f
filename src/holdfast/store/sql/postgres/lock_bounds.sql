-- The bounded ones of these queues, held still: one submission at a time counts their seats.
with bound as (
    select name
    from holdfast_queues
    where max_queued is not null and name = any (array(select json_array_elements_text(cast(:queues as json))))
    order by name
    for update
)

update holdfast_queues as q
set version = q.version + 1
from bound
where q.name = bound.name
returning q.name, q.max_queued
