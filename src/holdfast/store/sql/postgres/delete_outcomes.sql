-- How these runs ended is no longer kept; refused unless the gate is open.
delete from holdfast_outcomes
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
