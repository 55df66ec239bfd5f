-- Keys that no one wants any more.
delete from holdfast_holds
where key = any (array(select json_array_elements_text(cast(:ids as json)))) and run_id is null
