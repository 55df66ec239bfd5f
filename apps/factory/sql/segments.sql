-- One row for each stage of a job, and for each segment of a stage that is split (the stage itself has segment '').
-- A stage or segment that no worker ever claimed is never in ERROR: it stays NEW, and `reason` says why it was skipped.
-- A split stage is in ERROR if one of its segments is. `diagnostic` describes the newest recovery of a run that is not DONE.
create view segments as
select
    r.parent_id as job_id,
    r.stage,
    r.segment,
    r.id as run_id,
    case
        when r.place = 'outcomes' and r.state = 'succeeded' then 'DONE'
        when r.place = 'outcomes' and r.claim > 0 then 'ERROR'
        when r.place = 'outcomes' and r.segment = '' and exists (
            select 1
            from holdfast_run_view as s
            where
                s.parent_id = r.parent_id
                and s.stage = r.stage
                and s.segment <> ''
                and s.place = 'outcomes'
                and s.state <> 'succeeded'
                and s.claim > 0
        ) then 'ERROR'
        when r.place = 'outcomes' then 'NEW'
        when r.place = 'leases' then 'RUNNING'
        when r.place = 'ready' then 'READY'
        when r.due_at is not null and r.attempt > 0 then 'ERROR'
        else 'NEW'
    end as state,
    case when r.place = 'leases' then r.holder end as lease_owner,
    r.expires_at as lease_expires_at,
    case when r.place = 'outcomes' then 1 else 0 end as ended,
    r.claim,
    r.attempt,
    r.takeovers,
    r.started_at,
    r.finished_at,
    r.due_at as retry_at,
    case when r.place = 'outcomes' and r.claim = 0 then r.error end as reason,
    case when r.takeovers > 0 and r.state <> 'succeeded' then (
        select d.description || ' (' || r.stage || case when r.segment = '' then '' else '[' || r.segment || ']' end || ')'
        from recoveries as d
        where d.run_id = r.id
        order by d.number desc
        limit 1
    ) end as diagnostic,
    r.error,
    r.result
from holdfast_run_view as r
where r.stage is not null and r.parent_id in (select e.run_id from editions as e)
