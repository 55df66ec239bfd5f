-- What was recorded after that, of all runs: those of a kind that is wanted, and the last that was looked at. Numbers
-- are given before the commit: what was written since the oldest transaction that is still open waits for it.
select
    c.id,
    c.tx,
    c.run_id,
    c.kind,
    c.attempt,
    c.data,
    c.happened_at,
    c.wanted
from (
    select
        e.id,
        e.tx,
        e.run_id,
        e.kind,
        e.attempt,
        e.data,
        e.happened_at,
        case
            when cast(:kinds as json) is null or e.kind in (select json_array_elements_text(cast(:kinds as json))) then 1
            else 0
        end as wanted,
        count(*) over () as searched,
        row_number() over (
            order by
                e.tx,
                e.id
        ) as number
    from (
        select
            id,
            tx,
            run_id,
            kind,
            attempt,
            data,
            happened_at
        from holdfast_events
        where
            (tx, id) > (:tx, :after)
            and tx < cast(cast(pg_snapshot_xmin(pg_current_snapshot()) as text) as bigint)
        order by
            tx,
            id
        limit :budget
    ) as e
) as c
where c.wanted = 1 or c.number = c.searched
order by
    c.tx,
    c.id
limit :limit
