-- Pipelines: their stages, and the segments into which a stage is split.

-- name: list_pipelines
-- The newest pipelines first.
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
    v.needed,
    v.audit,
    v.created_at,
    v.state,
    v.place,
    v.attempt,
    v.tries,
    v.takeovers,
    v.holder,
    v.started_at,
    v.finished_at,
    v.expires_at,
    v.deadline_at,
    v.cancel_requested_at,
    v.due_at,
    v.because,
    v.failure_type,
    v.error,
    v.result,
    r.policy
from holdfast_run as v
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
-- How far each of these pipelines is: its own stages, those that have succeeded, and when the first one began.
select
    v.parent_id,
    count(*) as stages,
    sum(case when v.state = 'succeeded' then 1 else 0 end) as done,
    sum(case when v.attempt > 0 then 1 else 0 end) as begun,
    min(v.started_at) as begun_at
from holdfast_run as v
where
    v.parent_id in {ids}
    and v.segment = ''
group by v.parent_id

-- name: find_troubles
-- The runs of a pipeline that failed by themselves, or wait to be tried again, as many as are asked for.
select
    v.id,
    v.stage,
    v.segment,
    v.place,
    v.state,
    v.due_at,
    v.because,
    v.failure_type,
    v.error
from holdfast_run as v
where
    v.parent_id = :parent_id
    and (
        (v.state in ('failed', 'timed_out') and v.failure_type <> :passed_on)
        or (v.due_at is not null and v.tries > 0)
    )
order by v.id
limit :limit

-- name: count_stages
-- How many runs of each stage of a pipeline stand where: its own, and those of its segments.
select
    v.stage,
    case when v.segment = '' then 0 else 1 end as is_segment,
    v.place,
    v.state,
    case when v.attempt > 0 then 1 else 0 end as claimed,
    case when v.due_at is not null and v.tries > 0 then 1 else 0 end as retrying,
    min(v.due_at) as due_at,
    max(case when v.attempt = 0 and v.segment = '' then v.error end) as reason,
    count(*) as runs
from holdfast_run as v
where v.parent_id = :parent_id
group by
    v.stage,
    case when v.segment = '' then 0 else 1 end,
    v.place,
    v.state,
    case when v.attempt > 0 then 1 else 0 end,
    case when v.due_at is not null and v.tries > 0 then 1 else 0 end

-- name: find_expansions
-- Split stages whose segments are to be made, with their pipelines' plans.
select
    w.run_id,
    w.errand,
    r.stage,
    r.trace,
    p.args
from holdfast_waits as w
inner join holdfast_runs as r on r.id = w.run_id
inner join holdfast_runs as p on p.id = r.parent_id
where
    w.errand is not null
    and w.missing <= 0
    and w.errand like 'expand%'
order by w.run_id
limit :limit
{postgres: for update of w skip locked}

-- name: find_expansions (sqlserver)
-- The update changes nothing: it holds them still until this transaction ends.
update w
set look = w.look
output
    inserted.run_id,
    inserted.errand,
    r.stage,
    r.trace,
    p.args
from (
    select top (:limit) d.run_id
    from holdfast_waits as d with (readpast, updlock, readcommittedlock)
    where d.errand is not null and d.missing <= 0 and d.errand like 'expand%'
    order by d.run_id
) as chosen
inner join holdfast_waits as w with (rowlock) on w.run_id = chosen.run_id
inner join holdfast_runs as r on r.id = w.run_id
inner join holdfast_runs as p on p.id = r.parent_id
where w.errand is not null and w.missing <= 0
{seek}

-- name: set_expansion
-- So far a stage's segments are made; the last batch lets it wait for all of them.
update holdfast_waits
set
    errand = :errand,
    missing = missing + :count,
    spare = case when :first = 1 then :spare else spare end,
    because = :because,
    look = 1
where run_id = :run_id

-- name: share_segments
-- The segments of a stage that there are; none of them can be removed before this transaction ends.
select id
from holdfast_runs {sqlserver: with (repeatableread, rowlock)}
where
    parent_id = :parent_id
    and parent_id is not null
    and stage = :stage
    and segment <> ''
{postgres: order by id for key share}

-- name: find_segments
-- The runs of these segments of a stage, those that there are.
select
    id,
    segment
from holdfast_runs
where
    parent_id = :parent_id
    and stage = :stage
    and segment in {names}

-- name: list_segments
-- A page of a stage's segments, shorter names first: those that are numbered come in the order of their numbers.
select
    v.id,
    v.segment,
    v.place,
    v.state,
    v.attempt,
    v.tries,
    v.due_at,
    case when v.attempt = 0 then v.error end as reason
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
inner join holdfast_run as v on v.id = page.id
order by
    length(page.segment),
    page.segment

-- name: list_segments (sqlserver)
select
    v.id,
    v.segment,
    v.place,
    v.state,
    v.attempt,
    v.tries,
    v.due_at,
    case when v.attempt = 0 then v.error end as reason
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
inner join holdfast_run as v on v.id = page.id
order by
    datalength(page.segment),
    page.segment

-- name: find_ready_segment
-- A segment of a stage that no one has claimed yet.
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
-- What the segments of a stage came to, those that succeeded.
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
