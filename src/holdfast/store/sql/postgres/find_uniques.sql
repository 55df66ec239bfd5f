-- Who was last submitted as the only run of its kind, and whether it is still queued or runs.
select
    u.job,
    u.digest,
    u.run_id,
    case
        when w.run_id is not null or y.run_id is not null then 'queued'
        when l.run_id is not null then 'running'
    end as place
from json_to_recordset(cast(:rows as json)) as r (job text, digest text)
inner join holdfast_uniques as u on u.job = r.job and u.digest = r.digest
left join holdfast_waits as w on w.run_id = u.run_id
left join holdfast_ready as y on y.run_id = u.run_id
left join holdfast_leases as l on l.run_id = u.run_id
