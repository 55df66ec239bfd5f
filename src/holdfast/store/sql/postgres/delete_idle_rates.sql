-- Rates that no one uses any more. Who holds row 0 still has all rows of its rate.
with idle as (
    select name
    from holdfast_rates
    where number = 0 and started_at < :before
    order by started_at
    limit :limit
    for update skip locked
)

delete from holdfast_rates as r
using idle
where r.name = idle.name
