-- Which of these leases are still ours; they stay so until this transaction ends.
select
    l.run_id,
    l.attempt
from json_each(:rows) as r
inner join holdfast_leases as l
    on
        l.run_id = r.value ->> 'run_id'
        and l.attempt = r.value ->> 'attempt'
        and l.holder = :holder
