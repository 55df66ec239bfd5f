-- A queue has a row once something is said about it.
insert into holdfast_queues (name)
values (:name)
on conflict do nothing
