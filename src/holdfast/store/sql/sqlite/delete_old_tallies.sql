-- What was counted long ago is no longer kept.
delete from holdfast_tallies
where (grain, job, queue, since_at, state) in (
    select
        grain,
        job,
        queue,
        since_at,
        state
    from holdfast_tallies
    where grain = :grain and since_at < :before
    order by since_at
    limit :limit
)
