-- These runs ask for nothing any more.
delete from holdfast_asks
where run_id in (select value from json_each(:ids))
