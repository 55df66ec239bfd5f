-- A worker stops.
delete from holdfast_workers
where id = :id
