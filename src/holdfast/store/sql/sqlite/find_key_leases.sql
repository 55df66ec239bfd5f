-- Which of these keys and numbers stand under a lease.
select
    l.key,
    l.number
from json_each(:rows) as r
inner join holdfast_leases as l on l.key = r.value ->> 'key' and l.number = r.value ->> 'number'
