-- How the run depends on each run in `needed`, so that one like it can wait as it did.
alter table holdfast_runs add column dependencies text
go
-- How many runs may hold the run's key at once. Neither this nor the key ever changes.
alter table holdfast_runs add column key_limit integer not null default 1
go
update holdfast_runs as r
set key_limit = coalesce((select l.key_limit from holdfast_leases as l where l.run_id = r.id), cast(substring(r.policy from '"key_limit":([0-9]+)') as integer), 1)
where r.key is not null
go
create function holdfast_refuse_key_change() returns trigger language plpgsql as $$
begin
    raise exception 'the id, the key and the key limit of a run, and those of its lease, never change' using errcode = 'check_violation';
end
$$
go
create trigger holdfast_tr_runs_key before update of id, key, key_limit on holdfast_runs
for each row execute function holdfast_refuse_key_change()
go
create trigger holdfast_tr_leases_final before update of run_id, key, key_limit, number on holdfast_leases
for each row execute function holdfast_refuse_key_change()
go
-- A lease has the key and the key limit of its run. With the unique index on (key, number), and numbers no higher than
-- the limit, no more runs of a key can be running than its limit says, whoever writes the lease.
create function holdfast_check_leases() returns trigger language plpgsql as $$
begin
    -- A subquery for each lease: whatever the planner knows of the tables, it reads runs by their primary key.
    if exists (
        select from started as l
        where not coalesce((select r.key is not distinct from l.key and r.key_limit = l.key_limit from holdfast_runs as r where r.id = l.run_id), false)
    ) then
        raise exception 'a lease has the key and the key limit of its run' using errcode = 'check_violation';
    end if;
    return null;
end
$$
go
create trigger holdfast_tr_leases_key after insert on holdfast_leases
referencing new table as started
for each statement execute function holdfast_check_leases()
