-- Claim, first half: the highest priority first, then the oldest.
with chosen as (
    select y.run_id
    from holdfast_ready as y
    where
        y.queue = :queue
        and (y.rank, y.run_id) >= (:floor_rank, :floor_id)
        and y.job = any (array(select json_array_elements_text(cast(:jobs as json))))
        and not exists (select 1 from holdfast_queues as q where q.name = :queue and q.paused_at is not null)
    order by y.rank, y.run_id
    limit :limit
    for update skip locked
),

taken as (
    delete from holdfast_ready as y
    using chosen
    where y.run_id = chosen.run_id
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
    r.args,
    r.policy,
    r.tags,
    r.again_of,
    r.kind,
    r.parent_id,
    r.stage,
    r.segment,
    r.needed,
    r.created_at
from taken as t
inner join holdfast_runs as r on r.id = t.run_id
