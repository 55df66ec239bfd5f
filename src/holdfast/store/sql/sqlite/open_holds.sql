-- These runs have had their turn.
update holdfast_holds
set run_id = null
where run_id in (select value from json_each(:ids))
