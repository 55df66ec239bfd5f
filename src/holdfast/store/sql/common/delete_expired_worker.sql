-- A worker that was not heard for a while loses its exclusive name.
delete from holdfast_workers
where id = :id and seen_at = :seen_at and expires_at < :now
