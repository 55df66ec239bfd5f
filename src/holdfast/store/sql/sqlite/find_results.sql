-- What these runs left behind, those that have ended.
select
    run_id,
    state,
    failure_type,
    error,
    result
from holdfast_outcomes
where run_id in (select value from json_each(:ids))
