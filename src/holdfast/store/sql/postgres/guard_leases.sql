-- Which of these leases are still ours; they stay so until this transaction ends.
select
    l.run_id,
    l.attempt
from json_to_recordset(cast(:rows as json)) as r (run_id text, attempt integer)
inner join holdfast_leases as l
    on
        l.run_id = r.run_id
        and l.attempt = r.attempt
        and l.holder = :holder
order by l.run_id
for key share of l
