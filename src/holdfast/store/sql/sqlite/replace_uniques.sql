-- Take over from runs that are no longer in the way, if they are still the ones that were seen.
update holdfast_uniques
set run_id = r.value ->> 'run_id'
from json_each(:rows) as r
where
    holdfast_uniques.job = r.value ->> 'job'
    and holdfast_uniques.digest = r.value ->> 'digest'
    and holdfast_uniques.run_id = r.value ->> 'old_id'
returning holdfast_uniques.run_id
