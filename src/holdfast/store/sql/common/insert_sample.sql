-- Take this minute's sample, unless someone has.
insert into holdfast_samples (minute_at, waiting, running, oldest)
values (:minute_at, :waiting, :running, :oldest)
on conflict do nothing
