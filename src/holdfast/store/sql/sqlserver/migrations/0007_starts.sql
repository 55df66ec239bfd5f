-- How the run depends on each run in `needed`, so that one like it can wait as it did.
alter table holdfast_runs add dependencies nvarchar(max) null
go
-- How many runs may hold the run's key at once. Neither this nor the key ever changes.
alter table holdfast_runs add key_limit int not null default 1
go
update r
set key_limit = coalesce(l.key_limit, case when isjson(r.policy) = 1 then cast(json_value(r.policy, '$.key_limit') as int) end, 1)
from holdfast_runs as r
left join holdfast_leases as l on l.run_id = r.id
where r.[key] is not null
go
-- What the run was submitted with, once more: a change of its id, its key or its key_limit alone is refused. No trigger
-- says so: an update with OUTPUT (lock_ended) can't have one.
alter table holdfast_runs add key_submitted nvarchar(450) collate latin1_general_100_bin2 null
go
update holdfast_runs
set key_submitted = concat(id, N'|', key_limit, N'|', [key])
go
alter table holdfast_runs add constraint holdfast_ck_runs_key
check (key_submitted = concat(id, N'|', key_limit, N'|', [key]))
go
-- A lease has the key and the key_limit of its run. With the unique index on (key, number), and numbers no higher than
-- key_limit, no more runs of a key can be running than it says, whoever writes the lease. Here a foreign key says so: an
-- insert with OUTPUT can't have a trigger. It compares no null, so no key is an empty one.
alter table holdfast_runs add locked as isnull([key], N'') persisted
go
alter table holdfast_leases add locked as isnull([key], N'') persisted
go
create unique index holdfast_ix_runs_locked on holdfast_runs (id, locked, key_limit)
go
alter table holdfast_leases add constraint holdfast_ix_leases_run
foreign key (run_id, locked, key_limit) references holdfast_runs (id, locked, key_limit)
