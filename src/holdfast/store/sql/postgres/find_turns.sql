-- For each of these open holds the oldest due waiters that may have it and have none yet (who keeps its key does), as
-- many as holds of its key are open; one whose time has just come is due, whoever has noticed it or not. (By due_at
-- too, though it is null: so the index's order is the one asked for, and the first rows of it are all that is read.)
select
    k.key,
    k.number,
    c.run_id
from json_to_recordset(cast(:rows as json)) as k (key text, number integer, opens integer)
cross join lateral (
    select d.run_id
    from (
        (
            select w.run_id
            from holdfast_waits as w
            where
                w.key = k.key
                and w.missing = 0
                and w.due_at is null
                and w.key_limit >= k.number
                and (select h.number from holdfast_holds as h where h.run_id = w.run_id) is null
            order by w.due_at, w.run_id
            limit k.opens
        )
        union all
        (
            select w.run_id
            from holdfast_waits as w
            where
                w.key = k.key
                and w.missing = 0
                and w.due_at <= :now
                and w.key_limit >= k.number
                and (select h.number from holdfast_holds as h where h.run_id = w.run_id) is null
            order by w.run_id
            limit k.opens
        )
    ) as d
    order by d.run_id
    limit k.opens
) as c
order by k.key, k.number, c.run_id
