-- Take over from runs that are no longer in the way, if they are still the ones that were seen.
update holdfast_uniques as u
set run_id = r.run_id
from json_to_recordset(cast(:rows as json)) as r (job text, digest text, run_id text, old_id text)
where u.job = r.job and u.digest = r.digest and u.run_id = r.old_id
returning u.run_id
