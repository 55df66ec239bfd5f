-- Which of these keys and numbers stand under a lease.
select
    l.key,
    l.number
from json_to_recordset(cast(:rows as json)) as r (key text, number integer)
inner join holdfast_leases as l on l.key = r.key and l.number = r.number
