-- What these runs left behind, those that have ended.
select
    run_id,
    state,
    failure_type,
    error,
    result
from holdfast_outcomes
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
