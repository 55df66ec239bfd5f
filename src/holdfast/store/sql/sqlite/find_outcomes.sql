-- How these runs ended, those that did.
select
    run_id,
    state
from holdfast_outcomes
where run_id in (select value from json_each(:ids))
