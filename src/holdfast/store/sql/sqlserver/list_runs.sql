-- The newest runs first; one that a caller's open transaction submits is passed by.
select top (:limit)
    v.id,
    v.job,
    v.queue,
    v.priority,
    v.[key],
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
from holdfast_runs as r with (readpast, readcommittedlock)
inner join holdfast_run as v on v.id = r.id
where
    r.id < :before
    and (cast(:state as nvarchar(200)) is null or v.state = :state)
    and (cast(:job as nvarchar(1000)) is null or r.job = :job)
    and (cast(:queue as nvarchar(1000)) is null or r.queue = :queue)
    and (cast(:tag as nvarchar(2000)) is null or r.tags like :tag escape '~')
    and (cast(:parent_id as varchar(100)) is null or r.parent_id = :parent_id)
    and (:parts = 1 or r.kind is null or r.kind not in ('stage', 'segment'))
order by r.id desc
