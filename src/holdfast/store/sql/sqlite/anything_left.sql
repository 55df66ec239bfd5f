-- Is anything left that a worker of these queues could do now, or as soon as an orchestrator has looked?
select 1 as something
where
    exists (select 1 from holdfast_ready where queue in (select value from json_each(:queues)) and job in (select value from json_each(:jobs)))
    or exists (
        select 1
        from holdfast_waits as w
        where
            w.queue in (select value from json_each(:queues))
            and w.job in (select value from json_each(:jobs))
            and (
                w.look = 1
                or (w.missing <= 0 and (w.due_at is null or w.due_at <= :now))
                or exists (
                    select 1
                    from holdfast_needs as n
                    inner join holdfast_outcomes as o on o.run_id = n.needed
                    where n.run_id = w.run_id
                )
            )
    )
    or exists (
        select 1
        from holdfast_leases as l
        where
            l.queue in (select value from json_each(:queues))
            and l.job in (select value from json_each(:jobs))
            and l.expires_at < :now
    )
