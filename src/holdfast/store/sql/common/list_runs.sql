-- The newest runs first.
select
    v.id,
    v.job,
    v.queue,
    v.priority,
    v.key,
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
inner join holdfast_runs as r on r.id = v.id
where
    v.id < :before
    and (cast(:state as varchar(20)) is null or v.state = :state)
    and (cast(:job as varchar(200)) is null or v.job = :job)
    and (cast(:queue as varchar(200)) is null or v.queue = :queue)
    and (cast(:tag as varchar(2000)) is null or v.tags like :tag escape '~')
    and (cast(:parent_id as varchar(100)) is null or v.parent_id = :parent_id)
    and (:parts = 1 or v.kind is null or v.kind not in ('stage', 'segment'))
order by v.id desc
limit :limit
