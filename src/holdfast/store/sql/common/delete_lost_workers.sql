-- Workers that went silent long ago.
delete from holdfast_workers
where expires_at < :before
