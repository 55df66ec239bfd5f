-- Which attempts of these runs hold a lease.
select
    run_id,
    attempt,
    holder
from holdfast_leases
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
