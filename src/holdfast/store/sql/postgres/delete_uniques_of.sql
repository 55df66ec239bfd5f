-- These runs are no longer the last of their kind.
delete from holdfast_uniques
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
