-- How these runs ended is no longer kept; refused unless the gate is open.
delete from holdfast_outcomes
where run_id in (select value from json_each(:ids))
