-- Those of these runs that can't go: not ended, an audit log, or named by someone.
select r.id
from holdfast_runs as r
left join holdfast_outcomes as o on o.run_id = r.id
where
    r.id = any (array(select json_array_elements_text(cast(:ids as json))))
    and (
        o.run_id is null
        or r.audit = 1
        or exists (select 1 from holdfast_needs as n where n.needed = r.id)
        or exists (select 1 from holdfast_builds as b where b.run_id = r.id and b.stale_at is null and o.state = 'succeeded')
        or exists (select 1 from holdfast_stops as s where s.parent_id = r.id)
        or exists (select 1 from holdfast_runs as a where a.again_of = r.id and a.kind = 'pipeline')
        or exists (select 1 from holdfast_runs as a where a.again_of = r.parent_id and a.kind = 'pipeline')
        or exists (
            select 1
            from holdfast_slots as t
            inner join holdfast_schedules as c on c.name = t.job
            where t.run_id = r.id and t.slot_at > c.considered_at
        )
    )
