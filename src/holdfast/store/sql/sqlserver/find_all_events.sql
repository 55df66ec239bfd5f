-- What was recorded after that, of all runs: those of a kind that is wanted, and the last that was looked at. Numbers
-- are given before the commit: what was written since the oldest transaction that is still open waits for it.
select top (:limit)
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
        cast(e.tx as bigint) as tx,
        e.run_id,
        e.kind,
        e.attempt,
        e.data,
        e.happened_at,
        case
            when cast(:kinds as nvarchar(4000)) is null then 1
            when e.kind in (select k.kind collate latin1_general_100_bin2 from openjson(:kinds) with (kind nvarchar(200) '$') as k) then 1
            else 0
        end as wanted,
        count(*) over () as searched,
        row_number() over (order by e.tx) as number
    from (
        select top (:budget)
            id,
            tx,
            run_id,
            kind,
            attempt,
            data,
            happened_at
        from holdfast_events with (readpast, readcommittedlock)
        where
            :after >= 0
            and tx > cast(cast(:tx as bigint) as binary(8))
            and tx < min_active_rowversion()
        order by tx
    ) as e
) as c
where c.wanted = 1 or c.number = c.searched
order by c.number
