-- The slots that these runs had are no longer kept.
delete from holdfast_slots
where run_id in (select value from json_each(:ids))
