-- An idle worker is alive; and is there anything to do? No row: it has been declared dead.
update holdfast_workers
set
    seen_at = :now,
    expires_at = :expires_at
where id = :holder
returning
    exists (
        select 1
        from holdfast_ready as y
        where y.queue in (select value from json_each(:queues)) and y.job in (select value from json_each(:jobs))
    ) as ready,
    exists (select 1 from holdfast_waits where look = 1) as looks,
    exists (select 1 from holdfast_holds where run_id is null) as open_holds,
    exists (select 1 from holdfast_needs) as needs,
    exists (select 1 from holdfast_waits where errand is not null and missing <= 0) as errands,
    exists (select 1 from holdfast_stops) as stops,
    exists (select 1 from holdfast_leases where holder = :holder and cancel_requested_at is not null) as cancels,
    drain_at is not null as drains,
    (select min(expires_at) from holdfast_leases) as expires_at,
    (select min(due_at) from holdfast_waits where due_at is not null and missing = 0) as due_at,
    null as clock_at
