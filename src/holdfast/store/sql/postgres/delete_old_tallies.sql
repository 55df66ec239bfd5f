-- What was counted long ago is no longer kept.
delete from holdfast_tallies
where ctid = any (array(
    select ctid
    from holdfast_tallies
    where grain = :grain and since_at < :before
    order by since_at
    limit :limit
    for update skip locked
))
