-- A stretch of one place, the newest first: the runs in it that are wanted, and the last that was looked at.
select
    p.run_id,
    p.position_at,
    p.found,
    p.searched,
    p.matched
from (
    select
        m.run_id,
        m.position_at,
        m.found,
        count(*) over () as searched,
        sum(m.found) over () as matched,
        row_number() over (
            order by
                m.position_at desc,
                m.run_id desc
        ) as number
    from (
        select
            c.run_id,
            c.position_at,
            (
                select count(*)
                from holdfast_runs as q
                where
                    q.id = c.run_id
                    and q.id < :below
                    and q.created_at >= :since
                    and q.created_at < :until
                    and (:job is null or q.job = :job)
                    and (:queue is null or q.queue = :queue)
                    and (:key is null or q.key = :key)
                    and (:tag is null or q.tags like :tag escape '~')
                    and (:parent_id is null or q.parent_id = :parent_id)
                    and (:parts = 1 or q.kind is null or q.kind not in ('stage', 'segment'))
                    and (:tested is null or :tested = (select v.state from holdfast_run as v where v.id = q.id))
                    and (
                        :error is null
                        or instr(lower((select e.error from holdfast_outcomes as e where e.run_id = q.id)), lower(:error)) > 0
                    )
                    and not exists (
                        select 1
                        from json_each(:args) as a
                        where
                            -- Arguments that can't be decoded match no value, not even null. SQLite 3.40 cuts a text off at a NUL.
                            case
                                when json_valid(q.args) and instr(replace(q.args, '\\', ''), '\u0000') = 0
                                then coalesce(
                                    case json_type(case q.kind when 'pipeline' then q.args -> '$.arguments' else q.args end, a.value ->> 'path')
                                        when 'text' then case q.kind when 'pipeline' then q.args -> '$.arguments' else q.args end ->> (a.value ->> 'path')
                                        else case q.kind when 'pipeline' then q.args -> '$.arguments' else q.args end -> (a.value ->> 'path')
                                    end,
                                    'null'
                                )
                            end is not a.value ->> 'text'
                    )
            ) as found
        from (
            select
                every.run_id,
                every.position_at
            from (
                select
                    w.run_id,
                    w.position_at
                from (
                    select
                        run_id,
                        null as position_at
                    from holdfast_waits
                    where
                        :place = 'queued'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                    limit :budget
                ) as w
                union all
                select
                    y.run_id,
                    y.position_at
                from (
                    select
                        run_id,
                        null as position_at
                    from holdfast_ready
                    where
                        :place = 'queued'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                    limit :budget
                ) as y
                union all
                select
                    l.run_id,
                    l.position_at
                from (
                    select
                        run_id,
                        null as position_at
                    from holdfast_leases
                    where
                        :place = 'running'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                    limit :budget
                ) as l
                union all
                select
                    o.run_id,
                    o.position_at
                from (
                    select
                        run_id,
                        finished_at as position_at
                    from holdfast_outcomes
                    where
                        :place = 'ended'
                        and state = :state
                        and finished_at >= :since
                        and finished_at <= :before_at
                        and (finished_at < :before_at or run_id < :before)
                    order by
                        finished_at desc,
                        run_id desc
                    limit :budget
                ) as o
                union all
                select
                    r.run_id,
                    r.position_at
                from (
                    select
                        id as run_id,
                        null as position_at
                    from holdfast_runs
                    where
                        :place = 'runs'
                        and id < :before
                        and id > :after
                    order by id desc
                    limit :budget
                ) as r
                union all
                select
                    j.run_id,
                    j.position_at
                from (
                    select
                        id as run_id,
                        null as position_at
                    from holdfast_runs
                    where
                        :place = 'job'
                        and id < :before
                        and id > :after
                        and job = :job
                    order by id desc
                    limit :budget
                ) as j
                union all
                select
                    p.run_id,
                    p.position_at
                from (
                    select
                        id as run_id,
                        null as position_at
                    from holdfast_runs
                    where
                        :place = 'parent'
                        and id < :before
                        and id > :after
                        and parent_id = :parent_id
                    order by id desc
                    limit :budget
                ) as p
            ) as every
            order by
                every.position_at desc,
                every.run_id desc
            limit :budget
        ) as c
    ) as m
) as p
where p.found = 1 or p.number = p.searched
order by p.number
limit :limit
