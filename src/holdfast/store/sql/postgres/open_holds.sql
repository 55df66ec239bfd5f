-- These runs have had their turn.
update holdfast_holds
set run_id = null
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
