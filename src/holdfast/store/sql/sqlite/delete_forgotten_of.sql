-- What these runs have forgotten is no longer kept, either.
delete from holdfast_forgotten
where run_id in (select value from json_each(:ids))
