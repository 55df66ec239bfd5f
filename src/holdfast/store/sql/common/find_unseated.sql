-- Runs of a queue (* is every one) that count in its bound and have no seat, in their order.
select run_id
from (
    select run_id
    from (
        select p.run_id
        from holdfast_leases as p
        inner join holdfast_runs as r on r.id = p.run_id
        where
            p.run_id > :after
            and (p.queue = :queue or cast(:queue as text) = '*')
            and coalesce(r.kind, '') <> 'build'
            and not exists (select 1 from holdfast_seats as s where s.run_id = p.run_id)
        order by p.run_id
        limit :limit
    ) as leases
    union all
    select run_id
    from (
        select p.run_id
        from holdfast_waits as p
        inner join holdfast_runs as r on r.id = p.run_id
        where
            p.run_id > :after
            and (p.queue = :queue or cast(:queue as text) = '*')
            and coalesce(r.kind, '') <> 'build'
            and not exists (select 1 from holdfast_seats as s where s.run_id = p.run_id)
        order by p.run_id
        limit :limit
    ) as waits
    union all
    select run_id
    from (
        select p.run_id
        from holdfast_ready as p
        inner join holdfast_runs as r on r.id = p.run_id
        where
            p.run_id > :after
            and (p.queue = :queue or cast(:queue as text) = '*')
            and coalesce(r.kind, '') <> 'build'
            and not exists (select 1 from holdfast_seats as s where s.run_id = p.run_id)
        order by p.run_id
        limit :limit
    ) as ready
) as p
order by run_id
limit :limit
