-- How many runs ended between two instants.
select count(*) as runs
from holdfast_outcomes
where
    state in ('succeeded', 'failed', 'cancelled', 'timed_out')
    and finished_at >= :since
    and finished_at < :before
