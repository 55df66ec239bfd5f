-- For how many seconds the oldest transaction has been open that may write outcomes: one of ours, or one that writes.
select cast(extract(epoch from clock_timestamp() - min(xact_start)) as double precision) as seconds
from pg_stat_activity
where
    datname = current_database()
    and pid <> pg_backend_pid()
    and (application_name = 'holdfast' or backend_xid is not null)
