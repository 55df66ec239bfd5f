-- Take this minute's sample, unless someone has.
insert into holdfast_samples (minute_at, waiting, running, oldest)
select
    cast(:minute_at as datetime2(6)),
    cast(:waiting as bigint),
    cast(:running as bigint),
    cast(:oldest as bigint)
where not exists (select 1 from holdfast_samples where minute_at = :minute_at)
