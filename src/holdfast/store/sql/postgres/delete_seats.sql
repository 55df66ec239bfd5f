-- These runs have ended.
delete from holdfast_seats
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
