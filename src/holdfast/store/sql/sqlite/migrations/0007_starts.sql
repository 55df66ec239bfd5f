-- How the run depends on each run in `needed`, so that one like it can wait as it did.
alter table holdfast_runs add column dependencies text
go
-- How many runs may hold the run's key at once. Neither this nor the key ever changes.
alter table holdfast_runs add column key_limit integer not null default 1
go
update holdfast_runs
set key_limit = coalesce((select l.key_limit from holdfast_leases as l where l.run_id = holdfast_runs.id), case when json_valid(policy) then policy ->> '$.key_limit' end, 1)
where key is not null
go
create trigger holdfast_tr_runs_key before update of id, key, key_limit on holdfast_runs
begin
    select raise(abort, 'the id, the key and the key limit of a run never change');
end
go
-- A lease has the key and the key limit of its run. With the unique index on (key, number), and numbers no higher than
-- the limit, no more runs of a key can be running than its limit says, whoever writes the lease.
create trigger holdfast_tr_leases_key before insert on holdfast_leases
when not exists (select 1 from holdfast_runs as r where r.id = new.run_id and r.key is new.key and r.key_limit = new.key_limit)
begin
    select raise(abort, 'a lease has the key and the key limit of its run');
end
go
create trigger holdfast_tr_leases_final before update of run_id, key, key_limit, number on holdfast_leases
begin
    select raise(abort, 'the run, the key, the key limit and the number of a lease never change');
end
