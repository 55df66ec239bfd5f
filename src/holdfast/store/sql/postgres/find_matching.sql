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
        cast(sum(m.found) over () as integer) as matched,
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
                    and (cast(:job as text) is null or q.job = :job)
                    and (cast(:queue as text) is null or q.queue = :queue)
                    and (cast(:key as text) is null or q.key = :key)
                    and (cast(:tag as text) is null or q.tags like :tag escape '~')
                    and (cast(:parent_id as text) is null or q.parent_id = :parent_id)
                    and (:parts = 1 or q.kind is null or q.kind not in ('stage', 'segment'))
                    and (cast(:tested as text) is null or :tested = (select v.state from holdfast_run as v where v.id = q.id))
                    and (
                        cast(:error as text) is null
                        or strpos(lower((select e.error from holdfast_outcomes as e where e.run_id = q.id)), lower(cast(:error as text))) > 0
                    )
                    and not exists (
                        select
                        from json_to_recordset(cast(:args as json)) as a (parts json, text text)
                        where
                            -- Arguments that can't be decoded match no value, not even null.
                            holdfast_argument(q.args, q.kind, array(select json_array_elements_text(a.parts))) is distinct from a.text
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
                        cast(null as timestamptz) as position_at
                    from holdfast_waits
                    where
                        cast(:place as text) = 'queued'
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
                        cast(null as timestamptz) as position_at
                    from holdfast_ready
                    where
                        cast(:place as text) = 'queued'
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
                        cast(null as timestamptz) as position_at
                    from holdfast_leases
                    where
                        cast(:place as text) = 'running'
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
                        cast(:place as text) = 'ended'
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
                        cast(null as timestamptz) as position_at
                    from holdfast_runs
                    where
                        cast(:place as text) = 'runs'
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
                        cast(null as timestamptz) as position_at
                    from holdfast_runs
                    where
                        -- As a pair: by two conditions it may go through other jobs' runs too.
                        cast(:place as text) = 'job'
                        and (job, id) < (:job, :before)
                        and (job, id) > (:job, :after)
                    order by
                        job desc,
                        id desc
                    limit :budget
                ) as j
                union all
                select
                    p.run_id,
                    p.position_at
                from (
                    select
                        f.id as run_id,
                        cast(null as timestamptz) as position_at
                    from (
                        -- All of a family first: in the order of ids it may go through everyone else's runs too.
                        select id
                        from holdfast_runs
                        where cast(:place as text) = 'parent' and parent_id = :parent_id
                        offset 0
                    ) as f
                    where
                        f.id < :before
                        and f.id > :after
                    order by f.id desc
                    limit :budget
                ) as p
            ) as every
            order by
                every.position_at desc,
                every.run_id desc
            limit :budget
        ) as c
        offset 0
    ) as m
) as p
where p.found = 1 or p.number = p.searched
order by p.number
limit :limit
