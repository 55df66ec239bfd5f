-- What was submitted, and how many runs of its queue may run at once.
select
    r.id,
    r.args,
    r.policy,
    r.key as own_key,
    r.key_limit as own_key_limit,
    r.tags,
    r.again_of,
    r.kind,
    r.parent_id,
    r.stage,
    r.segment,
    r.needed,
    r.trace,
    r.created_at,
    q.concurrency
from holdfast_runs as r
left join holdfast_queues as q on q.name = r.queue
where r.id in (select value from json_each(:ids))
