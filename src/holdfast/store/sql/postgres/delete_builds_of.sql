-- What these runs made, or failed to make, is no build any more.
delete from holdfast_builds
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
