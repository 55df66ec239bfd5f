-- Ready runs: each may be claimed by any worker of its queue.

-- name: insert_ready
-- Insert ready runs.
{insert holdfast_ready:
    run_id id, job name, queue name, rank int, run_key name, claim int, attempt int, takeovers int, key_limit int,
    key_number int, rate_turn bigint}

-- name: take_ready (sqlite)
-- Claim, first half: take ready runs, the highest priority first, then the oldest; at most as many as the queue has free
-- concurrency permits.
delete from holdfast_ready
where run_id in (
    select y.run_id
    from holdfast_ready as y
    where
        y.queue = :queue
        and (y.rank, y.run_id) >= (:from_rank, :from_id)
        and y.job in {jobs}
    order by y.rank, y.run_id
    limit coalesce(
        (
            select
                case
                    when q.paused_at is not null then 0
                    when q.concurrency is null then :limit
                    else max(0, min(:limit, q.concurrency - (select count(*) from holdfast_leases as l where l.queue = :queue and l.permit is not null)))
                end
            from holdfast_queues as q
            where q.name = :queue
        ),
        :limit
    )
)
returning
    run_id,
    job,
    queue,
    rank,
    run_key,
    claim,
    attempt,
    takeovers,
    key_limit,
    key_number,
    rate_turn

-- name: take_ready (postgres)
with room as (
    select
        q.concurrency,
        case
            when q.paused_at is not null then 0
            when q.concurrency is null then :limit
            else greatest(0, least(:limit, q.concurrency - (select count(*) from holdfast_leases as l where l.queue = :queue and l.permit is not null)))
        end as free
    from holdfast_queues as q
    where q.name = :queue
),

chosen as (
    select y.run_id
    from holdfast_ready as y
    where
        y.queue = :queue
        and (y.rank, y.run_id) >= (:from_rank, :from_id)
        and y.job in {jobs}
    order by y.rank, y.run_id
    limit coalesce((select free from room), :limit)
    for update skip locked
),

taken as (
    delete from holdfast_ready as y
    -- Repeat the limit: the planner can't tell from the one above that there are few rows.
    using (select run_id from chosen limit :limit) as few
    where y.run_id = few.run_id
    returning y.run_id, y.job, y.queue, y.rank, y.run_key, y.claim, y.attempt, y.takeovers, y.key_limit, y.key_number, y.rate_turn
)

select
    t.run_id,
    t.job,
    t.queue,
    t.rank,
    t.run_key,
    t.claim,
    t.attempt,
    t.takeovers,
    t.key_limit,
    t.key_number,
    t.rate_turn,
    (select concurrency from room) as concurrency,
    r.args,
    r.policy,
    r.run_key as own_key,
    r.key_limit as own_key_limit,
    r.tags,
    r.again_of,
    r.kind,
    r.parent_id,
    r.stage,
    r.segment,
    r.depends_on,
    r.traceparent,
    r.created_at
from taken as t
inner join holdfast_runs as r on r.id = t.run_id

-- name: take_ready (sqlserver)
-- Claim, first half: take ready runs, the highest priority first, then the oldest. The delete decides: a transaction that
-- chose the same row finds it gone.
delete y
output
    deleted.run_id,
    deleted.job,
    deleted.queue,
    deleted.rank,
    deleted.run_key,
    deleted.claim,
    deleted.attempt,
    deleted.takeovers,
    deleted.key_limit,
    deleted.key_number,
    deleted.rate_turn,
    chosen.concurrency
from (
    select top (coalesce(
        (
            select
                case
                    when q.paused_at is not null then 0
                    when q.concurrency is null then :limit
                    when q.concurrency <= (select count(*) from holdfast_leases as l where l.queue = :queue and l.permit is not null) then 0
                    when q.concurrency - (select count(*) from holdfast_leases as l where l.queue = :queue and l.permit is not null) < :limit then q.concurrency - (select count(*) from holdfast_leases as l where l.queue = :queue and l.permit is not null)
                    else :limit
                end
            from holdfast_queues as q
            where q.name = :queue
        ),
        :limit
    ))
        c.run_id,
        (select q.concurrency from holdfast_queues as q where q.name = :queue) as concurrency
    from holdfast_ready as c with (readpast, updlock, readcommittedlock)
    where
        c.queue = :queue
        and c.rank >= :from_rank
        and (c.rank > :from_rank or c.run_id >= :from_id)
        and c.job in (select j.name collate latin1_general_100_bin2 from openjson(:jobs) with (name nvarchar(1000) '$') as j)
    order by c.rank, c.run_id
) as chosen
inner join holdfast_ready as y with (rowlock) on y.run_id = chosen.run_id
{seek}

-- name: take_oldest_ready (sqlite)
-- Claim, first half, in the order of age alone, so that runs of low priority start eventually.
delete from holdfast_ready
where run_id in (
    select run_id
    from (
        select run_id
        from (
            select y.run_id
            from holdfast_ready as y
            where y.queue = :queue and y.rank = 0 and y.job in {jobs}
            order by y.run_id
            limit :limit
        )
        union all
        select run_id
        from (
            select y.run_id
            from holdfast_ready as y
            where y.queue = :queue and y.rank <> 0 and y.job in {jobs}
            order by y.run_id
            limit :limit
        )
    )
    order by run_id
    limit coalesce(
        (
            select
                case
                    when q.paused_at is not null then 0
                    when q.concurrency is null then :limit
                    else max(0, min(:limit, q.concurrency - (select count(*) from holdfast_leases as l where l.queue = :queue and l.permit is not null)))
                end
            from holdfast_queues as q
            where q.name = :queue
        ),
        :limit
    )
)
returning
    run_id,
    job,
    queue,
    rank,
    run_key,
    claim,
    attempt,
    takeovers,
    key_limit,
    key_number,
    rate_turn

-- name: take_oldest_ready (postgres)
with room as (
    select
        q.concurrency,
        case
            when q.paused_at is not null then 0
            when q.concurrency is null then :limit
            else greatest(0, least(:limit, q.concurrency - (select count(*) from holdfast_leases as l where l.queue = :queue and l.permit is not null)))
        end as free
    from holdfast_queues as q
    where q.name = :queue
),

plain as (
    select y.run_id
    from holdfast_ready as y
    -- Use `between`: with `=`, other indexes would provide this order, too, and the planner could choose a slower one.
    where y.queue = :queue and y.rank between 0 and 0 and y.job in {jobs}
    order by y.rank, y.run_id
    limit :limit
    for update skip locked
),

ranked as (
    select y.run_id
    from holdfast_ready as y
    where y.queue = :queue and y.rank <> 0 and y.job in {jobs}
    order by y.run_id
    limit :limit
    for update skip locked
),

chosen as (
    select run_id
    from (select run_id from plain union all select run_id from ranked) as oldest
    order by run_id
    limit coalesce((select free from room), :limit)
),

taken as (
    delete from holdfast_ready as y
    -- Repeat the limit: the planner can't tell from the one above that there are few rows.
    using (select run_id from chosen limit :limit) as few
    where y.run_id = few.run_id
    returning y.run_id, y.job, y.queue, y.rank, y.run_key, y.claim, y.attempt, y.takeovers, y.key_limit, y.key_number, y.rate_turn
)

select
    t.run_id,
    t.job,
    t.queue,
    t.rank,
    t.run_key,
    t.claim,
    t.attempt,
    t.takeovers,
    t.key_limit,
    t.key_number,
    t.rate_turn,
    (select concurrency from room) as concurrency,
    r.args,
    r.policy,
    r.run_key as own_key,
    r.key_limit as own_key_limit,
    r.tags,
    r.again_of,
    r.kind,
    r.parent_id,
    r.stage,
    r.segment,
    r.depends_on,
    r.traceparent,
    r.created_at
from taken as t
inner join holdfast_runs as r on r.id = t.run_id

-- name: take_oldest_ready (sqlserver)
delete y
output
    deleted.run_id,
    deleted.job,
    deleted.queue,
    deleted.rank,
    deleted.run_key,
    deleted.claim,
    deleted.attempt,
    deleted.takeovers,
    deleted.key_limit,
    deleted.key_number,
    deleted.rate_turn,
    chosen.concurrency
from (
    select top (coalesce(
        (
            select
                case
                    when q.paused_at is not null then 0
                    when q.concurrency is null then :limit
                    when q.concurrency <= (select count(*) from holdfast_leases as l where l.queue = :queue and l.permit is not null) then 0
                    when q.concurrency - (select count(*) from holdfast_leases as l where l.queue = :queue and l.permit is not null) < :limit then q.concurrency - (select count(*) from holdfast_leases as l where l.queue = :queue and l.permit is not null)
                    else :limit
                end
            from holdfast_queues as q
            where q.name = :queue
        ),
        :limit
    ))
        oldest.run_id,
        (select q.concurrency from holdfast_queues as q where q.name = :queue) as concurrency
    from (
        select plain.run_id
        from (
            select top (:limit) c.run_id
            from holdfast_ready as c with (readpast, updlock, readcommittedlock)
            where c.queue = :queue and c.rank = 0 and c.job in (select j.name collate latin1_general_100_bin2 from openjson(:jobs) with (name nvarchar(1000) '$') as j)
            order by c.run_id
        ) as plain
        union all
        select ranked.run_id
        from (
            select top (:limit) c.run_id
            from holdfast_ready as c with (readpast, updlock, readcommittedlock)
            where c.queue = :queue and c.rank <> 0 and c.job in (select j.name collate latin1_general_100_bin2 from openjson(:jobs) with (name nvarchar(1000) '$') as j)
            order by c.run_id
        ) as ranked
    ) as oldest
    order by oldest.run_id
) as chosen
inner join holdfast_ready as y with (rowlock) on y.run_id = chosen.run_id
{seek}

-- name: delete_ready
-- Delete ready runs and return them; the caller inserts them elsewhere.
delete from holdfast_ready
where run_id in {ids}
returning run_id, job, queue, rank, run_key, claim, attempt, takeovers, key_limit, key_number, rate_turn

-- name: find_ready_queues
-- Find the queues that have ready runs.
select distinct queue
from holdfast_ready
order by queue

-- name: count_ahead
-- Count the ready runs of the queue that start before this one.
select count(*) as ahead
from holdfast_ready as y
inner join holdfast_ready as me on me.run_id = :run_id
where y.queue = :queue and (y.rank < me.rank or (y.rank = me.rank and y.run_id < me.run_id))
