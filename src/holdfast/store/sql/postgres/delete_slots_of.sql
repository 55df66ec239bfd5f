-- The slots that these runs had are no longer kept.
delete from holdfast_slots
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
