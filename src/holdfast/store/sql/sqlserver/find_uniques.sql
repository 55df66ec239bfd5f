-- Who was last submitted as the only run of its kind, and whether it is still queued or runs.
select
    u.job,
    u.digest,
    u.run_id,
    case
        when w.run_id is not null or y.run_id is not null then 'queued'
        when l.run_id is not null then 'running'
    end as place
from openjson(:rows) with (job nvarchar(1000), digest varchar(200)) as r
inner join holdfast_uniques as u
    on
        u.job = r.job collate latin1_general_100_bin2
        and u.digest = r.digest collate latin1_general_100_bin2
left join holdfast_waits as w on w.run_id = u.run_id
left join holdfast_ready as y on y.run_id = u.run_id
left join holdfast_leases as l on l.run_id = u.run_id
