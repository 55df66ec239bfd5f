-- What these runs have forgotten is no longer kept, either.
delete from holdfast_forgotten
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
