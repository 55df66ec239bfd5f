-- Every lease there is, and what to do about it. The update changes nothing: as in find_expired.
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
    order by e.run_id
) as chosen
inner join holdfast_leases as l with (rowlock) on l.run_id = chosen.run_id
inner join holdfast_runs as r on r.id = l.run_id
option (force order, loop join)
