-- Those of these runs that hold their key.
select
    run_id,
    number
from holdfast_holds
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
