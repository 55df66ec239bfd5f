-- Looked at, and it still has to wait: for a need that has not ended, for its time, for a key
-- whose holds are all taken, or for an errand of ours. One that asks for a build has yet to be given it.
update w
set look = 0
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_waits as w with (rowlock) on w.run_id = k.id collate latin1_general_100_bin2
where
    w.look = 1
    and not exists (select 1 from holdfast_asks as a where a.run_id = w.run_id)
    and (
        (
            w.missing > 0
            and not exists (
                select 1
                from holdfast_needs as n
                inner join holdfast_outcomes as o on o.run_id = n.needed
                where n.run_id = w.run_id
            )
        )
        or (w.missing = 0 and w.due_at is not null)
        or (
            w.missing = 0
            and w.key_limit <= (
                select count(*)
                from holdfast_holds as h
                where h.[key] = w.[key] and h.number <= w.key_limit and h.run_id is not null
            )
        )
        or (w.errand is not null and w.missing <= 0)
    )
option (force order, loop join)
