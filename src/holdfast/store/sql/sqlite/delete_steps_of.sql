-- What these runs remembered is no longer kept.
delete from holdfast_steps
where run_id in (select value from json_each(:ids))
