-- Is there anything to do? One query, answered from indexes.
select
    exists (
        -- Queue by queue, in an order that only the index has: else a full queue of others would be read through.
        select 1
        from json_array_elements_text(cast(:queues as json)) as q (name)
        where (
            select 1
            from holdfast_ready as y
            where y.queue = q.name and y.job = any (array(select json_array_elements_text(cast(:jobs as json))))
            order by y.rank, y.run_id
            limit 1
        ) = 1
    ) as ready,
    exists (select 1 from holdfast_waits where look = 1) as looks,
    exists (select 1 from holdfast_holds where run_id is null) as open_holds,
    exists (select 1 from holdfast_needs) as needs,
    exists (select 1 from holdfast_waits where errand is not null and missing <= 0) as errands,
    exists (select 1 from holdfast_stops) as stops,
    exists (select 1 from holdfast_leases where holder = :holder and cancel_requested_at is not null) as cancels,
    exists (select 1 from holdfast_workers where id = :holder and drain_at is not null) as drains,
    (select min(expires_at) from holdfast_leases) as expires_at,
    (select min(due_at) from holdfast_waits where due_at is not null and missing = 0) as due_at,
    clock_timestamp() as clock_at
