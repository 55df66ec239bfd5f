-- For each of these open holds the oldest due waiters that may have it and have none yet (who keeps its key does), as
-- many as holds of its key are open; one whose time has just come is due, whoever has noticed it or not. Each is found
-- by the one before it: no waiter is passed over.
with recursive found (key, number, opens, turn, run_id) as (
    select
        value ->> 'key',
        value ->> 'number',
        value ->> 'opens',
        0,
        ''
    from json_each(:rows)
    union all
    select
        f.key,
        f.number,
        f.opens,
        f.turn + 1,
        (
            select min(c.run_id)
            from (
                select *
                from (
                    select w.run_id
                    from holdfast_waits as w
                    where
                        w.key = f.key
                        and w.missing = 0
                        and w.due_at is null
                        and w.run_id > f.run_id
                        and w.key_limit >= f.number
                        and not exists (select 1 from holdfast_holds as h where h.run_id = w.run_id)
                    order by w.run_id
                    limit 1
                )
                union all
                select min(w.run_id) as run_id
                from holdfast_waits as w
                where
                    w.key = f.key
                    and w.missing = 0
                    and w.due_at <= :now
                    and w.run_id > f.run_id
                    and w.key_limit >= f.number
                    and not exists (select 1 from holdfast_holds as h where h.run_id = w.run_id)
            ) as c
        )
    from found as f
    where f.turn < f.opens and f.run_id is not null
)

select
    key,
    number,
    run_id
from found
where turn > 0 and run_id is not null
order by key, number, run_id
