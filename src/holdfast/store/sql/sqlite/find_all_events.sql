-- What was recorded after that, of all runs: those of a kind that is wanted, and the last that was looked at.
select
    c.id,
    0 as tx,
    c.run_id,
    c.kind,
    c.attempt,
    c.data,
    c.happened_at,
    c.wanted
from (
    select
        e.id,
        e.run_id,
        e.kind,
        e.attempt,
        e.data,
        e.happened_at,
        case when :kinds is null or e.kind in (select value from json_each(:kinds)) then 1 else 0 end as wanted,
        count(*) over () as searched,
        row_number() over (order by e.id) as number
    from (
        select
            id,
            run_id,
            kind,
            attempt,
            data,
            happened_at
        from holdfast_events
        where id > max(:after, :tx)
        order by id
        limit :budget
    ) as e
) as c
where c.wanted = 1 or c.number = c.searched
order by c.id
limit :limit
