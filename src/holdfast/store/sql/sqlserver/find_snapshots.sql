-- These runs, wherever they are.
select
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
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as r on r.id = k.id collate latin1_general_100_bin2
inner join holdfast_run as v on v.id = r.id
option (force order, loop join)
