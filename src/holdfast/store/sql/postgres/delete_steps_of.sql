-- What these runs remembered is no longer kept.
delete from holdfast_steps
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
