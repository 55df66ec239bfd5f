-- These runs have ended.
delete from holdfast_seats
where run_id in (select value from json_each(:ids))
