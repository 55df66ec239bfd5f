-- The oldest due waiter of each of these keys.
select
    k.key,
    (
        select w.run_id
        from holdfast_waits as w
        where w.key = k.key and w.missing = 0 and w.due_at is null
        order by w.run_id
        limit 1
    ) as run_id
from json_array_elements_text(cast(:ids as json)) as k (key)
