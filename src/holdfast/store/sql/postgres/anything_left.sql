-- Is anything left that a worker of these queues could do now, or as soon as an orchestrator has looked?
select 1 as something
where
    exists (select 1 from holdfast_ready where queue = any (array(select json_array_elements_text(cast(:queues as json)))) and job = any (array(select json_array_elements_text(cast(:jobs as json)))))
    or exists (
        select 1
        from holdfast_waits as w
        where
            w.queue = any (array(select json_array_elements_text(cast(:queues as json))))
            and w.job = any (array(select json_array_elements_text(cast(:jobs as json))))
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
            l.queue = any (array(select json_array_elements_text(cast(:queues as json))))
            and l.job = any (array(select json_array_elements_text(cast(:jobs as json))))
            and l.expires_at < :now
    )
