-- Passes that have run out.
delete from holdfast_passes
where expires_at <= :now
