-- Keys that someone holds or waits for: how many hold and wait, and since when the oldest of these is there.
with named as (
    select [key] from holdfast_holds where [key] > :after
    union
    select [key] from holdfast_waits where [key] is not null and missing = 0 and [key] > :after
),

page as (select top (:limit) [key] from named order by [key])

select
    p.[key],
    (
        select max(each.key_limit)
        from (
            select w.key_limit from holdfast_waits as w where w.[key] = p.[key] and w.missing = 0
            union all
            select l.key_limit from holdfast_leases as l where l.[key] = p.[key]
            union all
            select max(h.number) as key_limit from holdfast_holds as h where h.[key] = p.[key]
        ) as each
    ) as key_limit,
    (
        select count(*)
        from holdfast_waits as w
        where
            w.[key] = p.[key]
            and w.missing = 0
            and not exists (select 1 from holdfast_holds as h where h.[key] = w.[key] and h.run_id = w.run_id)
    ) as waiting,
    (
        select min(r.created_at)
        from holdfast_runs as r
        where
            r.id = (
                select min(w.run_id)
                from holdfast_waits as w
                where
                    w.[key] = p.[key]
                    and w.missing = 0
                    and not exists (select 1 from holdfast_holds as h where h.[key] = w.[key] and h.run_id = w.run_id)
            )
    ) as oldest_at
from page as p
order by p.[key]
