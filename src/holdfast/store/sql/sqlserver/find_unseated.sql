-- Runs of a queue (* is every one) that count in its bound and have no seat, in their order.
select top (:limit) run_id
from (
    select run_id
    from (
        select top (:limit) p.run_id
        from holdfast_leases as p with (readpast, readcommittedlock)
        inner join holdfast_runs as r on r.id = p.run_id
        where
            p.run_id > :after
            and (p.queue = :queue or :queue = '*')
            and coalesce(r.kind, '') <> 'build'
            and not exists (select 1 from holdfast_seats as s where s.run_id = p.run_id)
        order by p.run_id
    ) as leases
    union all
    select run_id
    from (
        select top (:limit) p.run_id
        from holdfast_waits as p with (readpast, readcommittedlock)
        inner join holdfast_runs as r on r.id = p.run_id
        where
            p.run_id > :after
            and (p.queue = :queue or :queue = '*')
            and coalesce(r.kind, '') <> 'build'
            and not exists (select 1 from holdfast_seats as s where s.run_id = p.run_id)
        order by p.run_id
    ) as waits
    union all
    select run_id
    from (
        select top (:limit) p.run_id
        from holdfast_ready as p with (readpast, readcommittedlock)
        inner join holdfast_runs as r on r.id = p.run_id
        where
            p.run_id > :after
            and (p.queue = :queue or :queue = '*')
            and coalesce(r.kind, '') <> 'build'
            and not exists (select 1 from holdfast_seats as s where s.run_id = p.run_id)
        order by p.run_id
    ) as ready
) as p
order by run_id
