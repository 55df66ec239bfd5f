-- One row for each stage of a job. Until a split stage has ended, it has the state of its most advanced segment.
-- `reason` says why a stage was skipped; `diagnostic` describes the newest recovery of a segment that is not DONE.
create view stages as
select
    s.job_id,
    s.stage,
    case
        when max(case when s.segment = '' and s.state in ('DONE', 'ERROR') then s.ended else 0 end) = 1 then max(case when s.segment = '' then s.state end)
        when max(case when s.state = 'RUNNING' then 1 else 0 end) = 1 then 'RUNNING'
        when max(case when s.state = 'READY' then 1 else 0 end) = 1 then 'READY'
        when max(case when s.state = 'ERROR' then 1 else 0 end) = 1 then 'ERROR'
        else 'NEW'
    end as state,
    (
        select l.lease_owner
        from segments as l
        where l.job_id = s.job_id and l.stage = s.stage and l.state = 'RUNNING'
        order by l.lease_expires_at, l.segment
        limit 1
    ) as lease_owner,
    min(case when s.state = 'RUNNING' then s.lease_expires_at end) as lease_expires_at,
    max(case when s.segment = '' and s.state = 'NEW' then s.reason end) as reason,
    max(s.diagnostic) as diagnostic,
    sum(case when s.segment <> '' then 1 else 0 end) as segments,
    sum(case when s.segment <> '' and s.state = 'DONE' then 1 else 0 end) as segments_done
from segments as s
group by s.job_id, s.stage
