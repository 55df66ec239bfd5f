-- Rates that no one uses any more. Who holds row 0 still has all rows of its rate.
delete from holdfast_rates
where name in (
    select name
    from holdfast_rates
    where number = 0 and started_at < :before
    order by started_at
    limit :limit
)
