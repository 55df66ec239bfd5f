-- The isolation of this transaction, if its statements do not see what others commit meanwhile.
select case when transaction_isolation_level = 5 then 'snapshot' end as isolation
from sys.dm_exec_sessions
where session_id = @@spid
