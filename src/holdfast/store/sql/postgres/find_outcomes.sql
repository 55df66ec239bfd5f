-- How these runs ended, those that did.
select
    run_id,
    state
from holdfast_outcomes
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
