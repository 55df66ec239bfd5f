-- A stretch of one place, the newest first: the runs in it that are wanted, and the last that was looked at. What is
-- locked because it is being renewed or moved is not passed by: who acts on all that match would miss it.
select top (:limit)
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
                    and (cast(:job as nvarchar(1000)) is null or q.job = :job)
                    and (cast(:queue as nvarchar(1000)) is null or q.queue = :queue)
                    and (cast(:key as nvarchar(1000)) is null or q.[key] = :key)
                    and (cast(:tag as nvarchar(4000)) is null or q.tags like :tag escape '~')
                    and (cast(:parent_id as nvarchar(100)) is null or q.parent_id = :parent_id)
                    and (:parts = 1 or q.kind is null or q.kind not in ('stage', 'segment'))
                    and (cast(:tested as nvarchar(20)) is null or :tested = (select v.state from holdfast_run as v where v.id = q.id))
                    and (
                        cast(:error as nvarchar(1000)) is null
                        or charindex(lower(cast(:error as nvarchar(1000))), lower((select e.error from holdfast_outcomes as e where e.run_id = q.id))) > 0
                    )
                    and not exists (
                        select 1
                        from openjson(:args) with (path nvarchar(2000), text nvarchar(1000)) as a
                        where
                            -- Arguments that can't be decoded match no value, not even null.
                            case isjson(q.args)
                                when 1
                                then
                                    case
                                        when
                                            coalesce(
                                                json_value(case q.kind when 'pipeline' then json_query(q.args, '$.arguments') else q.args end, a.path),
                                                'null'
                                            ) collate latin1_general_100_bin2 = a.text collate latin1_general_100_bin2
                                            then 1
                                        else 0
                                    end
                                else 0
                            end = 0
                    )
            ) as found
        from (
            select top (:budget)
                every.run_id,
                every.position_at
            from (
                select
                    w.run_id,
                    w.position_at
                from (
                    select top (:budget)
                        run_id,
                        cast(null as datetime2(6)) as position_at
                    from holdfast_waits
                    where
                        cast(:place as varchar(20)) = 'queued'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                ) as w
                union all
                select
                    y.run_id,
                    y.position_at
                from (
                    select top (:budget)
                        run_id,
                        cast(null as datetime2(6)) as position_at
                    from holdfast_ready
                    where
                        cast(:place as varchar(20)) = 'queued'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                ) as y
                union all
                select
                    l.run_id,
                    l.position_at
                from (
                    select top (:budget)
                        run_id,
                        cast(null as datetime2(6)) as position_at
                    from holdfast_leases
                    where
                        cast(:place as varchar(20)) = 'running'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                ) as l
                union all
                select
                    o.run_id,
                    o.position_at
                from (
                    select top (:budget)
                        run_id,
                        finished_at as position_at
                    from holdfast_outcomes
                    where
                        cast(:place as varchar(20)) = 'ended'
                        and state = :state
                        and finished_at >= :since
                        and finished_at <= :before_at
                        and (finished_at < :before_at or run_id < :before)
                    order by
                        finished_at desc,
                        run_id desc
                ) as o
                union all
                select
                    r.run_id,
                    r.position_at
                from (
                    select top (:budget)
                        id as run_id,
                        cast(null as datetime2(6)) as position_at
                    from holdfast_runs with (readpast, readcommittedlock)
                    where
                        cast(:place as varchar(20)) = 'runs'
                        and id < :before
                        and id > :after
                    order by id desc
                ) as r
                union all
                select
                    j.run_id,
                    j.position_at
                from (
                    select top (:budget)
                        id as run_id,
                        cast(null as datetime2(6)) as position_at
                    from holdfast_runs with (readpast, readcommittedlock)
                    where
                        cast(:place as varchar(20)) = 'job'
                        and id < :before
                        and id > :after
                        and job = :job
                    order by id desc
                ) as j
                union all
                select
                    p.run_id,
                    p.position_at
                from (
                    select top (:budget)
                        id as run_id,
                        cast(null as datetime2(6)) as position_at
                    from holdfast_runs with (readpast, readcommittedlock)
                    where
                        cast(:place as varchar(20)) = 'parent'
                        and id < :before
                        and id > :after
                        and parent_id = :parent_id
                    order by id desc
                ) as p
            ) as every
            order by
                every.position_at desc,
                every.run_id desc
        ) as c
    ) as m
) as p
where p.found = 1 or p.number = p.searched
order by p.number
