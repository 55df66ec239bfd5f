-- Every lease there is, and what to do about it.
select
    l.run_id, l.job, l.queue, l.rank, l.key, l.attempt, l.tries, l.takeovers, l.key_limit, l.number, l.place, l.holder, l.started_at, l.expires_at, l.deadline_at, l.cancel_requested_at, l.cancel_reason,
    r.policy, r.kind
from holdfast_leases as l
inner join holdfast_runs as r on r.id = l.run_id
order by l.run_id
limit :limit
