-- Where something begins that is done piece by piece; whoever comes first says it.
insert into holdfast_marks (name, done_at)
values (:name, :now)
on conflict do nothing
