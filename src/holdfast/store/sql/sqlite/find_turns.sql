-- The oldest due waiter of each of these keys; one whose time has just come is due, whoever has noticed it or not.
select
    k.value as key,
    (
        select min(c.run_id)
        from (
            select min(w.run_id) as run_id
            from holdfast_waits as w
            where w.key = k.value and w.missing = 0 and w.due_at is null
            union all
            select min(w.run_id) as run_id
            from holdfast_waits as w
            where w.key = k.value and w.missing = 0 and w.due_at <= :now
        ) as c
    ) as run_id
from json_each(:ids) as k
