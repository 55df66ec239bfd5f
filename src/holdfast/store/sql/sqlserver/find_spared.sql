-- Those of these runs that can't go: not ended, an audit log, or named by someone.
select r.id
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as r on r.id = k.id collate latin1_general_100_bin2
left join holdfast_outcomes as o on o.run_id = r.id
where
    o.run_id is null
    or r.audit = 1
    or exists (select 1 from holdfast_needs as n where n.needed = r.id)
    or exists (select 1 from holdfast_builds as b where b.run_id = r.id and b.stale_at is null and o.state = 'succeeded')
    or exists (select 1 from holdfast_stops as s where s.parent_id = r.id)
    or exists (
        select 1
        from holdfast_runs as a
        where a.again_of = r.id and a.again_of is not null and a.kind = 'pipeline'
    )
    or exists (
        select 1
        from holdfast_runs as a
        where a.again_of = r.parent_id and a.again_of is not null and a.kind = 'pipeline'
    )
    or exists (
        select 1
        from holdfast_slots as t
        inner join holdfast_schedules as c on c.name = t.job
        where t.run_id = r.id and t.slot_at > c.considered_at
    )
