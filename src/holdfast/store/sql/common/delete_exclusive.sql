-- The operating system says that whoever had this name is gone.
delete from holdfast_workers
where exclusive = :exclusive
