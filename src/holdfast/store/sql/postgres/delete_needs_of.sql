-- These runs need nothing any more.
delete from holdfast_needs
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
