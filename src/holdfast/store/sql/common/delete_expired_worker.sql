-- A worker that went silent holds its exclusive name no longer.
delete from holdfast_workers
where exclusive = :exclusive and expires_at < :now
