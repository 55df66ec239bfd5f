-- The bounded ones of these queues, held still: one submission at a time counts their seats.
-- A caller's transaction that can't see the latest seats locks nothing, and is refused afterwards.
with bound as (
    select name
    from holdfast_queues
    where
        max_queued is not null
        and name = any (array(select json_array_elements_text(cast(:queues as json))))
        and current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
    order by name
    for update
),

held as (
    update holdfast_queues as q
    set version = q.version + 1
    from bound
    where q.name = bound.name
    returning q.name, q.max_queued
)

select
    name,
    max_queued
from held
union all
select
    name,
    max_queued
from holdfast_queues
where
    max_queued is not null
    and name = any (array(select json_array_elements_text(cast(:queues as json))))
    and current_setting('transaction_isolation') not in ('read committed', 'read uncommitted')
