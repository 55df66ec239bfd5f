-- These runs are no longer kept.
delete from holdfast_runs
where id = any (array(select json_array_elements_text(cast(:ids as json))))
