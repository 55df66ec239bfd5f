-- One row for each stage of a job, and for each segment of a stage that is split (the stage itself has segment '').
create view segments as
select
    r.parent_id as job_id,
    r.stage,
    r.segment,
    r.id as run_id,
    case
        when r.place = 'outcomes' and r.state = 'succeeded' then 'DONE'
        when r.place = 'outcomes' then 'ERROR'
        when r.place = 'leases' then 'RUNNING'
        when r.place = 'ready' then 'READY'
        when r.due_at is not null and r.tries > 0 then 'ERROR'
        else 'NEW'
    end as state,
    case when r.place = 'leases' then r.holder end as lease_owner,
    r.expires_at as lease_expires_at,
    case when r.place = 'outcomes' then 1 else 0 end as ended,
    r.attempt,
    r.tries,
    r.takeovers,
    r.started_at,
    r.finished_at,
    r.due_at as retry_at,
    r.error,
    r.result
from holdfast_run as r
where r.stage is not null and r.parent_id in (select e.run_id from editions as e)
