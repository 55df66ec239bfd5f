-- These runs ask for nothing any more.
delete from holdfast_asks
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
