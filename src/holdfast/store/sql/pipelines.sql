-- Pipelines: their stages, and the segments into which a stage is split.

-- name: list_pipelines
-- List pipelines, the newest first.
select
    v.id,
    v.job,
    v.queue,
    v.priority,
    v.run_key,
    v.args,
    v.tags,
    v.idempotency_key,
    v.again_of,
    v.kind,
    v.parent_id,
    v.stage,
    v.segment,
    v.depends_on,
    v.keep_forever,
    v.created_at,
    v.state,
    v.place,
    v.claim,
    v.attempt,
    v.takeovers,
    v.holder,
    v.started_at,
    v.finished_at,
    v.expires_at,
    v.deadline_at,
    v.cancel_requested_at,
    v.due_at,
    v.reason,
    v.failure_type,
    v.error,
    v.result,
    r.policy
from holdfast_run_view as v
inner join holdfast_runs as r {unlocked} on r.id = v.id
where
    r.kind = 'pipeline'
    and v.kind = 'pipeline'
    and r.id < :before
    and (cast(:state as varchar(20)) is null or v.state = :state)
    and (cast(:job as varchar(200)) is null or v.job = :job)
order by r.id desc
limit :limit

-- name: find_progress
-- Read the progress of these pipelines: how many stages each has, how many have succeeded, and when the first one began.
select
    v.parent_id,
    count(*) as stages,
    sum(case when v.state = 'succeeded' then 1 else 0 end) as done,
    sum(case when v.claim > 0 then 1 else 0 end) as begun,
    min(v.started_at) as begun_at
from holdfast_run_view as v
where
    v.parent_id in {ids}
    and v.segment = ''
group by v.parent_id

-- name: find_stage_failures
-- Find up to `limit` runs of a pipeline that failed themselves, or wait to be tried again.
select
    v.id,
    v.stage,
    v.segment,
    v.place,
    v.state,
    v.due_at,
    v.reason,
    v.failure_type,
    v.error
from holdfast_run_view as v
where
    v.parent_id = :parent_id
    and (
        (v.state in ('failed', 'timed_out') and v.failure_type <> :passed_on)
        or (v.due_at is not null and v.attempt > 0)
    )
order by v.id
limit :limit

-- name: count_stages
-- Count the runs of each stage of a pipeline by state: the stage's own run, and those of its segments.
select
    v.stage,
    case when v.segment = '' then 0 else 1 end as is_segment,
    v.place,
    v.state,
    case when v.claim > 0 then 1 else 0 end as claimed,
    case when v.due_at is not null and v.attempt > 0 then 1 else 0 end as retrying,
    min(v.due_at) as due_at,
    max(case when v.claim = 0 and v.segment = '' then v.error end) as reason,
    count(*) as runs
from holdfast_run_view as v
where v.parent_id = :parent_id
group by
    v.stage,
    case when v.segment = '' then 0 else 1 end,
    v.place,
    v.state,
    case when v.claim > 0 then 1 else 0 end,
    case when v.due_at is not null and v.attempt > 0 then 1 else 0 end

-- name: find_expansions
-- Find split stages whose segments must be created, with their pipelines' plans.
select
    w.run_id,
    w.pending_action,
    r.stage,
    r.traceparent,
    p.args
from holdfast_waits as w
inner join holdfast_runs as r on r.id = w.run_id
inner join holdfast_runs as p on p.id = r.parent_id
where
    w.pending_action is not null
    and w.dependencies_left <= 0
    and w.pending_action like 'expand%'
order by w.run_id
limit :limit
{postgres: for update of w skip locked}

-- name: find_expansions (sqlserver)
-- The update changes nothing: it locks the rows until this transaction ends.
update w
set unchecked = w.unchecked
output
    inserted.run_id,
    inserted.pending_action,
    r.stage,
    r.traceparent,
    p.args
from (
    select top (:limit) d.run_id
    from holdfast_waits as d with (readpast, updlock, readcommittedlock)
    where d.pending_action is not null and d.dependencies_left <= 0 and d.pending_action like 'expand%'
    order by d.run_id
) as chosen
inner join holdfast_waits as w with (rowlock) on w.run_id = chosen.run_id
inner join holdfast_runs as r on r.id = w.run_id
inner join holdfast_runs as p on p.id = r.parent_id
where w.pending_action is not null and w.dependencies_left <= 0
{seek}

-- name: set_expansion
-- Record how many segments of a stage have been created; after the last batch, the stage waits for all of them.
update holdfast_waits
set
    pending_action = :pending_action,
    dependencies_left = dependencies_left + :count,
    failures_allowed = case when :first = 1 then :failures_allowed else failures_allowed end,
    reason = :reason,
    unchecked = 1
where run_id = :run_id

-- name: share_segments
-- Find the existing segments of a stage, and lock them: none can be deleted before this transaction ends.
select id
from holdfast_runs {sqlserver: with (repeatableread, rowlock)}
where
    parent_id = :parent_id
    and parent_id is not null
    and stage = :stage
    and segment <> ''
{postgres: order by id for key share}

-- name: find_segments
-- Find the existing runs of these segments of a stage.
select
    id,
    segment
from holdfast_runs
where
    parent_id = :parent_id
    and stage = :stage
    and segment in {names}

-- name: list_segments
-- Read a page of a stage's segments, shorter names first, so that numbered segments are in the order of their numbers.
select
    v.id,
    v.segment,
    v.place,
    v.state,
    v.claim,
    v.attempt,
    v.due_at,
    case when v.claim = 0 then v.error end as reason
from (
    select
        id,
        segment
    from holdfast_runs
    where
        parent_id = :parent_id
        and stage = :stage
        and segment <> ''
        and (
            length(segment) > length(cast(:after as text))
            or (length(segment) = length(cast(:after as text)) and segment > :after)
        )
    order by
        length(segment),
        segment
    limit :limit
) as page
inner join holdfast_run_view as v on v.id = page.id
order by
    length(page.segment),
    page.segment

-- name: list_segments (sqlserver)
select
    v.id,
    v.segment,
    v.place,
    v.state,
    v.claim,
    v.attempt,
    v.due_at,
    case when v.claim = 0 then v.error end as reason
from (
    select top (:limit)
        id,
        segment
    from holdfast_runs with (readpast, readcommittedlock)
    where
        parent_id = :parent_id
        and stage = :stage
        and segment <> ''
        and (
            datalength(segment) > datalength(cast(:after as nvarchar(1000)))
            or (datalength(segment) = datalength(cast(:after as nvarchar(1000))) and segment > :after)
        )
    order by
        datalength(segment),
        segment
) as page
inner join holdfast_run_view as v on v.id = page.id
order by
    datalength(page.segment),
    page.segment

-- name: find_ready_segment
-- Find the oldest ready segment of a stage.
select r.id
from holdfast_runs as r
inner join holdfast_ready as y on y.run_id = r.id
where
    r.parent_id = :parent_id
    and r.stage = :stage
    and r.segment <> ''
order by r.id
limit 1

-- name: find_segment_results
-- Read the results of the segments of a stage that succeeded.
select
    r.segment,
    o.result
from holdfast_runs as r
inner join holdfast_outcomes as o on o.run_id = r.id
where
    r.parent_id = :parent_id
    and r.stage = :stage
    and r.segment <> ''
    and o.state = 'succeeded'
order by r.id
