-- Looked at, and it still has to wait: for a need that has not ended, for its time, for a key
-- whose holds are all taken, or for an errand of ours. One that asks for a build has yet to be given it.
update holdfast_waits
set look = 0
where
    look = 1
    and run_id = any (array(select json_array_elements_text(cast(:ids as json))))
    and not exists (select 1 from holdfast_asks as a where a.run_id = holdfast_waits.run_id)
    and (
        (
            missing > 0
            and not exists (
                select 1
                from holdfast_needs as n
                inner join holdfast_outcomes as o on o.run_id = n.needed
                where n.run_id = holdfast_waits.run_id
            )
        )
        or (missing = 0 and due_at is not null)
        or (
            missing = 0
            and key_limit <= (
                select count(*)
                from holdfast_holds as h
                where h.key = holdfast_waits.key and h.number <= holdfast_waits.key_limit and h.run_id is not null
            )
        )
        or (errand is not null and missing <= 0)
    )
