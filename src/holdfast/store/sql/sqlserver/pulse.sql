-- Is there anything to do? What is locked is someone else's to do, or not committed yet.
select
    case
        when exists (
            select 1
            from openjson(:queues) with (name nvarchar(1000) '$') as q
            inner join holdfast_ready as y with (readpast, readcommittedlock) on y.queue = q.name collate latin1_general_100_bin2
            where y.job in (select j.name collate latin1_general_100_bin2 from openjson(:jobs) with (name nvarchar(1000) '$') as j)
        ) then 1 else 0
    end as ready,
    case
        when exists (select 1 from holdfast_waits with (readpast, readcommittedlock) where look = 1) then 1 else 0
    end as looks,
    case
        when exists (select 1 from holdfast_holds with (readpast, readcommittedlock) where run_id is null) then 1 else 0
    end as open_holds,
    case
        when exists (select 1 from holdfast_needs with (readpast, readcommittedlock)) then 1 else 0
    end as needs,
    case
        when exists (
            select 1
            from holdfast_waits with (readpast, readcommittedlock)
            where errand is not null and missing <= 0
        ) then 1 else 0
    end as errands,
    case
        when exists (select 1 from holdfast_stops with (readpast, readcommittedlock)) then 1 else 0
    end as stops,
    case
        when exists (
            select 1
            from holdfast_leases with (readpast, readcommittedlock)
            where holder = :holder and cancel_requested_at is not null
        ) then 1 else 0
    end as cancels,
    case
        when exists (
            select 1
            from holdfast_workers with (readpast, readcommittedlock)
            where id = :holder and drain_at is not null
        ) then 1 else 0
    end as drains,
    (select min(expires_at) from holdfast_leases with (readpast, readcommittedlock)) as expires_at,
    (
        select min(due_at)
        from holdfast_waits with (readpast, readcommittedlock)
        where due_at is not null and missing = 0
    ) as due_at,
    sysutcdatetime() as clock_at
