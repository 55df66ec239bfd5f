-- Which of these keys and numbers stand under a lease.
select
    l.[key],
    l.number
from openjson(:rows) with ([key] nvarchar(1000), number int) as r
inner join holdfast_leases as l
    on
        l.[key] = r.[key] collate latin1_general_100_bin2
        and l.number = r.number
where l.[key] is not null
