-- Is anything left that a worker of these queues could do now, or as soon as an orchestrator has looked?
select 1 as something
where
    exists (
        select 1
        from openjson(:queues) with (name nvarchar(1000) '$') as q
        inner join holdfast_ready as y on y.queue = q.name collate latin1_general_100_bin2
        where y.job in (select j.name collate latin1_general_100_bin2 from openjson(:jobs) with (name nvarchar(1000) '$') as j)
    )
    or exists (
        select 1
        from openjson(:queues) with (name nvarchar(1000) '$') as q
        inner join holdfast_waits as w on w.queue = q.name collate latin1_general_100_bin2
        where
            w.job in (select j.name collate latin1_general_100_bin2 from openjson(:jobs) with (name nvarchar(1000) '$') as j)
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
        from openjson(:queues) with (name nvarchar(1000) '$') as q
        inner join holdfast_leases as l on l.queue = q.name collate latin1_general_100_bin2
        where
            l.job in (select j.name collate latin1_general_100_bin2 from openjson(:jobs) with (name nvarchar(1000) '$') as j)
            and l.expires_at < :now
    )
