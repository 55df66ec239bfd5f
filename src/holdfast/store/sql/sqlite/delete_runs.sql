-- These runs are no longer kept.
delete from holdfast_runs
where id in (select value from json_each(:ids))
