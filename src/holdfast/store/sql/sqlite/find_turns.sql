-- The oldest due waiter of each of these keys.
select
    k.value as key,
    (
        select w.run_id
        from holdfast_waits as w
        where w.key = k.value and w.missing = 0 and w.due_at is null
        order by w.run_id
        limit 1
    ) as run_id
from json_each(:ids) as k
