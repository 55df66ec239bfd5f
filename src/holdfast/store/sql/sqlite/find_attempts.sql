-- Which attempts of these runs hold a lease.
select
    run_id,
    attempt,
    holder
from holdfast_leases
where run_id in (select value from json_each(:ids))
