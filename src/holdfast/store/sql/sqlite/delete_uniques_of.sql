-- These runs are no longer the last of their kind.
delete from holdfast_uniques
where run_id in (select value from json_each(:ids))
