-- Leases that were seen expired before a given time and have not been renewed since, with their runs' policies. The
-- update changes nothing: it locks the rows until this transaction ends, so that no request to cancel comes in between.
update l
set holder = l.holder
output
    inserted.run_id,
    inserted.job,
    inserted.queue,
    inserted.rank,
    inserted.[key],
    inserted.attempt,
    inserted.tries,
    inserted.takeovers,
    inserted.key_limit,
    inserted.number,
    inserted.place,
    inserted.holder,
    inserted.started_at,
    inserted.expires_at,
    inserted.deadline_at,
    inserted.cancel_requested_at,
    inserted.cancel_reason,
    r.policy,
    r.kind
from (
    select top (:limit) e.run_id
    from holdfast_leases as e with (readpast, readcommittedlock)
    where e.expired_seen_at <= :seen_before
    order by e.run_id
) as chosen
inner join holdfast_leases as l with (rowlock) on l.run_id = chosen.run_id
inner join holdfast_runs as r on r.id = l.run_id
where l.expired_seen_at <= :seen_before
option (force order, loop join)
