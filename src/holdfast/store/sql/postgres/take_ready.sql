-- Claim, first half: the highest priority first, then the oldest; no more than the queue has places free.
with room as (
    select
        q.concurrency,
        case
            when q.paused_at is not null then 0
            when q.concurrency is null then :limit
            else greatest(0, least(:limit, q.concurrency - (select count(*) from holdfast_leases as l where l.queue = :queue and l.place is not null)))
        end as free
    from holdfast_queues as q
    where q.name = :queue
),

chosen as (
    select y.run_id
    from holdfast_ready as y
    where
        y.queue = :queue
        and (y.rank, y.run_id) >= (:floor_rank, :floor_id)
        and y.job = any (array(select json_array_elements_text(cast(:jobs as json))))
    order by y.rank, y.run_id
    limit coalesce((select free from room), :limit)
    for update skip locked
),

taken as (
    delete from holdfast_ready as y
    -- The limit says again what the planner can't see in the one above: that these are few.
    using (select run_id from chosen limit :limit) as few
    where y.run_id = few.run_id
    returning y.run_id, y.job, y.queue, y.rank, y.key, y.attempt, y.tries, y.takeovers, y.key_limit, y.number, y.reserved
)

select
    t.run_id,
    t.job,
    t.queue,
    t.rank,
    t.key,
    t.attempt,
    t.tries,
    t.takeovers,
    t.key_limit,
    t.number,
    t.reserved,
    (select concurrency from room) as concurrency,
    r.args,
    r.policy,
    r.key as own_key,
    r.key_limit as own_key_limit,
    r.tags,
    r.again_of,
    r.kind,
    r.parent_id,
    r.stage,
    r.segment,
    r.needed,
    r.trace,
    r.created_at
from taken as t
inner join holdfast_runs as r on r.id = t.run_id
