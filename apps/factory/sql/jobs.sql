-- One row for each edition of a video. For a stage with segments, the lease is the one that expires first.
-- `diagnostic` says why a job failed, and describes the newest recovery of a stage that is not DONE.
-- A stage that a rerun has copied from the earlier job has no row in `stages`, and counts as DONE.
create view jobs as
select
    p.id as job_id,
    e.video_id,
    e.number as edition,
    p.state as job_state,
    coalesce(max(case when g.stage = 'script' then g.state end), 'DONE') as script_state,
    max(case when g.stage = 'script' then g.lease_owner end) as script_lease_owner,
    max(case when g.stage = 'script' then g.lease_expires_at end) as script_lease_expires_at,
    coalesce(max(case when g.stage = 'audio' then g.state end), 'DONE') as audio_state,
    max(case when g.stage = 'audio' then g.lease_owner end) as audio_lease_owner,
    max(case when g.stage = 'audio' then g.lease_expires_at end) as audio_lease_expires_at,
    coalesce(max(case when g.stage = 'visuals' then g.state end), 'DONE') as visuals_state,
    max(case when g.stage = 'visuals' then g.lease_owner end) as visuals_lease_owner,
    max(case when g.stage = 'visuals' then g.lease_expires_at end) as visuals_lease_expires_at,
    coalesce(max(case when g.stage = 'render' then g.state end), 'DONE') as render_state,
    max(case when g.stage = 'render' then g.lease_owner end) as render_lease_owner,
    max(case when g.stage = 'render' then g.lease_expires_at end) as render_lease_expires_at,
    coalesce(max(case when g.stage = 'commit' then g.state end), 'DONE') as commit_state,
    max(case when g.stage = 'commit' then g.lease_owner end) as commit_lease_owner,
    max(case when g.stage = 'commit' then g.lease_expires_at end) as commit_lease_expires_at,
    case
        when p.error is null then max(g.diagnostic)
        else p.error || coalesce('; ' || max(g.diagnostic), '')
    end as diagnostic,
    p.created_at,
    p.finished_at
from editions as e
inner join holdfast_run_view as p on p.id = e.run_id
left join stages as g on g.job_id = p.id
group by p.id, e.video_id, e.number, p.state, p.error, p.created_at, p.finished_at
