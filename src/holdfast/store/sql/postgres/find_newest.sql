-- The newest run, after which new ones come. Not in a caller's transaction that reads from a snapshot: a serializable
-- one would conflict with every submission of others.
select
    id,
    created_at
from holdfast_runs
where current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
order by id desc
limit 1
