-- Which attempts of these runs hold a lease.
select
    l.run_id,
    l.attempt,
    l.holder
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_leases as l on l.run_id = k.id collate latin1_general_100_bin2
