-- Where a run stands; no one can move it, or write of it, before this transaction ends.
select p.run_id
from (
    select run_id
    from holdfast_leases with (updlock, rowlock)
    where run_id = :run_id
    union all
    select run_id
    from holdfast_outcomes with (updlock, rowlock)
    where run_id = :run_id
    union all
    select run_id
    from holdfast_waits with (updlock, rowlock)
    where run_id = :run_id
    union all
    select run_id
    from holdfast_ready with (updlock, rowlock)
    where run_id = :run_id
) as p
