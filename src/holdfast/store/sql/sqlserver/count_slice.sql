-- How many runs ended between two instants; what is not committed yet is waited for.
select count(*) as runs
from holdfast_outcomes with (readcommittedlock)
where
    state in ('succeeded', 'failed', 'cancelled', 'timed_out')
    and finished_at >= :since
    and finished_at < :before
