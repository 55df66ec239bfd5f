-- Runs: one row per submission of a job. Insert runs, read them with their states, and search them.

-- name: insert_runs
-- Insert new runs, except those that exist already (by id, by idempotency key, or as the same child).
-- If a queue is bounded but its capacity was not checked, created_at is null and the database refuses the insert.
insert into holdfast_runs (
    id,
    job,
    queue,
    priority,
    run_key,
    args,
    policy,
    tags,
    idempotency_key,
    again_of,
    kind,
    parent_id,
    stage,
    segment,
    depends_on,
    dependency_terms,
    key_limit,
    keep_forever,
    traceparent,
    created_at
)
select
    r.id,
    r.job,
    r.queue,
    r.priority,
    r.run_key,
    r.args,
    r.policy,
    r.tags,
    r.idempotency_key,
    r.again_of,
    r.kind,
    r.parent_id,
    r.stage,
    r.segment,
    r.depends_on,
    r.dependency_terms,
    r.key_limit,
    r.keep_forever,
    r.traceparent,
    case
        when
            :counted = 0
            and exists (
                select 1
                from holdfast_queues as q
                where q.max_queued is not null and q.name in ('*', r.queue)
            ) then null
        else r.created_at
    end
from {rows:
    id id, job name, queue name, priority int, run_key name, args text, policy text, tags text,
    idempotency_key name, again_of id, kind name, parent_id id, stage name, segment name,
    depends_on text, dependency_terms text, key_limit int, keep_forever int, traceparent name, created_at time} as r
where true
{postgres: order by r.id}
on conflict do nothing
returning id

-- name: insert_runs (sqlserver)
insert into holdfast_runs (
    id,
    job,
    queue,
    priority,
    run_key,
    args,
    policy,
    tags,
    idempotency_key,
    again_of,
    kind,
    parent_id,
    stage,
    segment,
    depends_on,
    dependency_terms,
    key_limit,
    key_submitted,
    keep_forever,
    traceparent,
    created_at
)
output inserted.id
select
    r.id,
    r.job,
    r.queue,
    r.priority,
    r.run_key,
    r.args,
    r.policy,
    r.tags,
    r.idempotency_key,
    r.again_of,
    r.kind,
    r.parent_id,
    r.stage,
    r.segment,
    r.depends_on,
    r.dependency_terms,
    r.key_limit,
    concat(r.id, '|', r.key_limit, '|', r.run_key),
    r.keep_forever,
    r.traceparent,
    case
        when
            :counted = 0
            and exists (
                select 1
                from holdfast_queues as q
                where q.max_queued is not null and (q.name = '*' or q.name = r.queue collate latin1_general_100_bin2)
            ) then null
        else r.created_at
    end
from (
    select
        s.id collate latin1_general_100_bin2 as id,
        s.job collate latin1_general_100_bin2 as job,
        s.queue,
        s.priority,
        s.run_key,
        s.args,
        s.policy,
        s.tags,
        s.idempotency_key collate latin1_general_100_bin2 as idempotency_key,
        s.again_of,
        s.kind,
        s.parent_id collate latin1_general_100_bin2 as parent_id,
        s.stage collate latin1_general_100_bin2 as stage,
        s.segment collate latin1_general_100_bin2 as segment,
        s.depends_on,
        s.dependency_terms,
        s.key_limit,
        s.keep_forever,
        s.traceparent,
        s.created_at,
        row_number() over (
            partition by
                s.job collate latin1_general_100_bin2,
                s.idempotency_key collate latin1_general_100_bin2,
                case when s.idempotency_key is null then s.id end
            order by s.id collate latin1_general_100_bin2
        ) as turn
    from openjson(:rows) with (
        id varchar(100),
        job nvarchar(1000),
        queue nvarchar(1000),
        priority int,
        run_key nvarchar(1000),
        args nvarchar(max),
        policy nvarchar(max),
        tags nvarchar(max),
        idempotency_key nvarchar(1000),
        again_of varchar(100),
        kind nvarchar(1000),
        parent_id varchar(100),
        stage nvarchar(1000),
        segment nvarchar(1000),
        depends_on nvarchar(max),
        dependency_terms nvarchar(max),
        key_limit int,
        keep_forever int,
        traceparent nvarchar(1000),
        created_at datetime2(6)
    ) as s
) as r
where
    r.turn = 1
    and not exists (select 1 from holdfast_runs as o where o.id = r.id)
    and not exists (
        select 1
        from holdfast_runs as o
        where o.job = r.job and o.idempotency_key = r.idempotency_key and o.idempotency_key is not null
    )
    and not exists (
        select 1
        from holdfast_runs as o
        where
            o.parent_id = r.parent_id
            and o.parent_id is not null
            and o.stage = r.stage
            and o.segment = r.segment
    )
order by r.id

-- name: find_idempotent
-- Find the runs that already have these idempotency keys.
select
    r.id,
    r.job,
    r.idempotency_key,
    r.args
from {rows: job name, idempotency_key name} as k
inner join holdfast_runs as r
    on r.job = k.job and r.idempotency_key = k.idempotency_key and r.idempotency_key is not null

-- name: get_submissions
-- Read the submissions of these runs.
select
    id,
    args,
    policy,
    run_key as own_key,
    key_limit as own_key_limit,
    tags,
    again_of,
    kind,
    parent_id,
    stage,
    segment,
    depends_on,
    traceparent,
    created_at
from holdfast_runs
where id in {ids}

-- name: get_submissions (sqlite)
-- Also reads the concurrency of the queue; on the other databases, `take_ready` returns it.
select
    r.id,
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
    r.created_at,
    q.concurrency
from holdfast_runs as r
left join holdfast_queues as q on q.name = r.queue
where r.id in {ids}

-- name: find_snapshots
-- Read these runs with their current states. The list appears twice because PostgreSQL does not push an array through
-- a join.
select
    v.id,
    v.job,
    v.queue,
    v.priority,
    v.run_key,
    v.args,
    v.tags,
    v.idempotency_key,
    v.again_of,
    v.kind,
    v.parent_id,
    v.stage,
    v.segment,
    v.depends_on,
    v.keep_forever,
    v.created_at,
    v.state,
    v.place,
    v.claim,
    v.attempt,
    v.takeovers,
    v.holder,
    v.started_at,
    v.finished_at,
    v.expires_at,
    v.deadline_at,
    v.cancel_requested_at,
    v.due_at,
    v.reason,
    v.failure_type,
    v.error,
    v.result,
    r.policy
from holdfast_run_view as v
inner join holdfast_runs as r on r.id = v.id
where
    v.id in {ids}
    and r.id in {ids}

-- name: find_snapshots (sqlserver)
select
    v.id,
    v.job,
    v.queue,
    v.priority,
    v.run_key,
    v.args,
    v.tags,
    v.idempotency_key,
    v.again_of,
    v.kind,
    v.parent_id,
    v.stage,
    v.segment,
    v.depends_on,
    v.keep_forever,
    v.created_at,
    v.state,
    v.place,
    v.claim,
    v.attempt,
    v.takeovers,
    v.holder,
    v.started_at,
    v.finished_at,
    v.expires_at,
    v.deadline_at,
    v.cancel_requested_at,
    v.due_at,
    v.reason,
    v.failure_type,
    v.error,
    v.result,
    r.policy
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as r on r.id = k.id collate latin1_general_100_bin2
inner join holdfast_run_view as v on v.id = r.id
{seek}

-- name: find_runs
-- Find which of these runs exist.
select id
from holdfast_runs
where id in {ids}

-- name: find_open
-- Find which of these runs exist and have not ended.
select r.id
from holdfast_runs as r
where
    r.id in {ids}
    and not exists (select 1 from holdfast_outcomes as o where o.run_id = r.id)

-- name: find_ids
-- Find the ids between two texts.
select id
from holdfast_runs {unlocked}
where
    id > :after
    and id < :before
order by id
limit :limit

-- name: find_newest (sqlite)
-- Find the newest run; the ids of new runs sort after it.
select
    id,
    created_at
from holdfast_runs
order by id desc
limit 1

-- name: find_newest (postgres)
-- Returns nothing in a caller transaction that reads from a snapshot: a serializable one would conflict with every
-- other submission.
select
    id,
    created_at
from holdfast_runs
where current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
order by id desc
limit 1

-- name: find_newest (sqlserver)
-- Find the newest run; the ids of new runs sort after it. Skips runs that are not committed yet.
select top (1)
    id,
    created_at
from holdfast_runs with (readpast, readcommittedlock)
order by id desc

-- name: find_related_runs
-- Read the states of a run's children, of the runs that repeat it, and of the runs in the list.
select
    k.relation,
    v.id,
    v.job,
    v.kind,
    v.stage,
    v.segment,
    v.state,
    v.created_at,
    v.started_at,
    v.finished_at,
    v.failure_type
from (
    select
        'child' as relation,
        c.id
    from (
        select r.id
        from holdfast_runs as r
        where r.parent_id = :run_id
        order by
            r.stage,
            r.segment
        limit :limit
    ) as c
    union all
    select
        'repeat' as relation,
        a.id
    from (
        select r.id
        from holdfast_runs as r
        where r.again_of = :run_id and r.again_of is not null
        order by r.id desc
        limit :limit
    ) as a
    union all
    select
        'named' as relation,
        n.id
    from holdfast_runs as n
    where n.id in {ids}
) as k
inner join holdfast_run_view as v on v.id = k.id

-- name: lock_run (sqlite)
-- Check that the run exists. It needs no lock: a writing transaction locks the whole database.
select id as run_id
from holdfast_runs
where id = :run_id

-- name: lock_run (postgres)
-- Find the run's row in the table that it is in, and lock the row: no other transaction can move the run or write its
-- events before this one ends.
with l as (
    select run_id
    from holdfast_leases
    where run_id = :run_id
    for update
),

o as (
    select run_id
    from holdfast_outcomes
    where run_id = :run_id
    for update
),

w as (
    select run_id
    from holdfast_waits
    where run_id = :run_id
    for update
),

y as (
    select run_id
    from holdfast_ready
    where run_id = :run_id
    for update
)

select run_id from l
union all
select run_id from o
union all
select run_id from w
union all
select run_id from y

-- name: lock_run (sqlserver)
-- Find the run's row in the table that it is in, and lock the row: no other transaction can move the run or write its
-- events before this one ends.
select p.run_id
from (
    select run_id
    from holdfast_leases with (updlock, rowlock)
    where run_id = :run_id
    union all
    select run_id
    from holdfast_outcomes with (updlock, rowlock)
    where run_id = :run_id
    union all
    select run_id
    from holdfast_waits with (updlock, rowlock)
    where run_id = :run_id
    union all
    select run_id
    from holdfast_ready with (updlock, rowlock)
    where run_id = :run_id
) as p

-- name: share_runs
-- Find which of these runs exist, and lock them: none can be deleted before this transaction ends.
select id
from holdfast_runs
where id in {ids}
{postgres: order by id for key share}

-- name: share_runs (sqlserver)
select r.id
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as r with (repeatableread, rowlock) on r.id = k.id collate latin1_general_100_bin2
{seek}

-- name: count_states
-- Count the runs in each state, up to `most` in each.
select
    (select count(*) from (select run_id from holdfast_waits limit :most) as w)
    + (select count(*) from (select run_id from holdfast_ready limit :most) as r) as queued,
    (select count(*) from (select run_id from holdfast_leases limit :most) as l) as running,
    (select count(*) from (select run_id from holdfast_outcomes where state = 'succeeded' order by finished_at desc limit :most) as o) as succeeded,
    (select count(*) from (select run_id from holdfast_outcomes where state = 'failed' order by finished_at desc limit :most) as o) as failed,
    (select count(*) from (select run_id from holdfast_outcomes where state = 'cancelled' order by finished_at desc limit :most) as o) as cancelled,
    (select count(*) from (select run_id from holdfast_outcomes where state = 'timed_out' order by finished_at desc limit :most) as o) as timed_out

-- name: count_states (sqlserver)
select
    (select count(*) from (select top (:most) run_id from holdfast_waits with (readpast, readcommittedlock)) as w)
    + (select count(*) from (select top (:most) run_id from holdfast_ready with (readpast, readcommittedlock)) as r) as queued,
    (select count(*) from (select top (:most) run_id from holdfast_leases with (readpast, readcommittedlock)) as l) as running,
    (select count(*) from (select top (:most) run_id from holdfast_outcomes with (readpast, readcommittedlock) where state = 'succeeded' order by finished_at desc) as o) as succeeded,
    (select count(*) from (select top (:most) run_id from holdfast_outcomes with (readpast, readcommittedlock) where state = 'failed' order by finished_at desc) as o) as failed,
    (select count(*) from (select top (:most) run_id from holdfast_outcomes with (readpast, readcommittedlock) where state = 'cancelled' order by finished_at desc) as o) as cancelled,
    (select count(*) from (select top (:most) run_id from holdfast_outcomes with (readpast, readcommittedlock) where state = 'timed_out' order by finished_at desc) as o) as timed_out

-- name: find_matching (sqlite)
-- Examine a range of one table, the newest run first. Returns the matching runs and the last one examined.
select
    p.run_id,
    p.position_at,
    p.found,
    p.searched,
    p.matched
from (
    select
        m.run_id,
        m.position_at,
        m.found,
        count(*) over () as searched,
        sum(m.found) over () as matched,
        row_number() over (
            order by
                m.position_at desc,
                m.run_id desc
        ) as number
    from (
        select
            c.run_id,
            c.position_at,
            (
                select count(*)
                from holdfast_runs as q
                where
                    q.id = c.run_id
                    and q.id < :below
                    and q.created_at >= :since
                    and q.created_at < :until
                    and (:job is null or q.job = :job)
                    and (:queue is null or q.queue = :queue)
                    and (:key is null or q.run_key = :key)
                    and (:tag is null or q.tags like :tag escape '~')
                    and (:parent_id is null or q.parent_id = :parent_id)
                    and (:parts = 1 or q.kind is null or q.kind not in ('stage', 'segment'))
                    and (:tested is null or :tested = (select v.state from holdfast_run_view as v where v.id = q.id))
                    and (
                        :error is null
                        or instr(lower((select e.error from holdfast_outcomes as e where e.run_id = q.id)), lower(:error)) > 0
                    )
                    and not exists (
                        select 1
                        from json_each(:args) as a
                        where
                            -- Arguments that can't be decoded match no value, not even null. SQLite 3.40 truncates a text at a NUL.
                            case
                                when json_valid(q.args) and instr(replace(q.args, '\\', ''), '\u0000') = 0
                                then coalesce(
                                    case json_type(case q.kind when 'pipeline' then q.args -> '$.arguments' else q.args end, a.value ->> 'path')
                                        when 'text' then case q.kind when 'pipeline' then q.args -> '$.arguments' else q.args end ->> (a.value ->> 'path')
                                        else case q.kind when 'pipeline' then q.args -> '$.arguments' else q.args end -> (a.value ->> 'path')
                                    end,
                                    'null'
                                )
                            end is not a.value ->> 'text'
                    )
            ) as found
        from (
            select
                every.run_id,
                every.position_at
            from (
                select
                    w.run_id,
                    w.position_at
                from (
                    select
                        run_id,
                        null as position_at
                    from holdfast_waits
                    where
                        :source = 'queued'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                    limit :budget
                ) as w
                union all
                select
                    y.run_id,
                    y.position_at
                from (
                    select
                        run_id,
                        null as position_at
                    from holdfast_ready
                    where
                        :source = 'queued'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                    limit :budget
                ) as y
                union all
                select
                    l.run_id,
                    l.position_at
                from (
                    select
                        run_id,
                        null as position_at
                    from holdfast_leases
                    where
                        :source = 'running'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                    limit :budget
                ) as l
                union all
                select
                    o.run_id,
                    o.position_at
                from (
                    select
                        run_id,
                        finished_at as position_at
                    from holdfast_outcomes
                    where
                        :source = 'ended'
                        and state = :state
                        and finished_at >= :since
                        and finished_at <= :before_at
                        and (finished_at < :before_at or run_id < :before)
                    order by
                        finished_at desc,
                        run_id desc
                    limit :budget
                ) as o
                union all
                select
                    r.run_id,
                    r.position_at
                from (
                    select
                        id as run_id,
                        null as position_at
                    from holdfast_runs
                    where
                        :source = 'runs'
                        and id < :before
                        and id > :after
                    order by id desc
                    limit :budget
                ) as r
                union all
                select
                    j.run_id,
                    j.position_at
                from (
                    select
                        id as run_id,
                        null as position_at
                    from holdfast_runs
                    where
                        :source = 'job'
                        and id < :before
                        and id > :after
                        and job = :job
                    order by id desc
                    limit :budget
                ) as j
                union all
                select
                    p.run_id,
                    p.position_at
                from (
                    select
                        id as run_id,
                        null as position_at
                    from holdfast_runs
                    where
                        :source = 'parent'
                        and id < :before
                        and id > :after
                        and parent_id = :parent_id
                    order by id desc
                    limit :budget
                ) as p
            ) as every
            order by
                every.position_at desc,
                every.run_id desc
            limit :budget
        ) as c
    ) as m
) as p
where p.found = 1 or p.number = p.searched
order by p.number
limit :limit

-- name: find_matching (postgres)
select
    p.run_id,
    p.position_at,
    p.found,
    p.searched,
    p.matched
from (
    select
        m.run_id,
        m.position_at,
        m.found,
        count(*) over () as searched,
        cast(sum(m.found) over () as integer) as matched,
        row_number() over (
            order by
                m.position_at desc,
                m.run_id desc
        ) as number
    from (
        select
            c.run_id,
            c.position_at,
            (
                select count(*)
                from holdfast_runs as q
                where
                    q.id = c.run_id
                    and q.id < :below
                    and q.created_at >= :since
                    and q.created_at < :until
                    and (cast(:job as text) is null or q.job = :job)
                    and (cast(:queue as text) is null or q.queue = :queue)
                    and (cast(:key as text) is null or q.run_key = :key)
                    and (cast(:tag as text) is null or q.tags like :tag escape '~')
                    and (cast(:parent_id as text) is null or q.parent_id = :parent_id)
                    and (:parts = 1 or q.kind is null or q.kind not in ('stage', 'segment'))
                    and (cast(:tested as text) is null or :tested = (select v.state from holdfast_run_view as v where v.id = q.id))
                    and (
                        cast(:error as text) is null
                        or strpos(lower((select e.error from holdfast_outcomes as e where e.run_id = q.id)), lower(cast(:error as text))) > 0
                    )
                    and not exists (
                        select
                        from json_to_recordset(cast(:args as json)) as a (parts json, text text)
                        where
                            -- Arguments that can't be decoded match no value, not even null.
                            holdfast_argument(q.args, q.kind, array(select json_array_elements_text(a.parts))) is distinct from a.text
                    )
            ) as found
        from (
            select
                every.run_id,
                every.position_at
            from (
                select
                    w.run_id,
                    w.position_at
                from (
                    select
                        run_id,
                        cast(null as timestamptz) as position_at
                    from holdfast_waits
                    where
                        cast(:source as text) = 'queued'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                    limit :budget
                ) as w
                union all
                select
                    y.run_id,
                    y.position_at
                from (
                    select
                        run_id,
                        cast(null as timestamptz) as position_at
                    from holdfast_ready
                    where
                        cast(:source as text) = 'queued'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                    limit :budget
                ) as y
                union all
                select
                    l.run_id,
                    l.position_at
                from (
                    select
                        run_id,
                        cast(null as timestamptz) as position_at
                    from holdfast_leases
                    where
                        cast(:source as text) = 'running'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                    limit :budget
                ) as l
                union all
                select
                    o.run_id,
                    o.position_at
                from (
                    select
                        run_id,
                        finished_at as position_at
                    from holdfast_outcomes
                    where
                        cast(:source as text) = 'ended'
                        and state = :state
                        and finished_at >= :since
                        and finished_at <= :before_at
                        and (finished_at < :before_at or run_id < :before)
                    order by
                        finished_at desc,
                        run_id desc
                    limit :budget
                ) as o
                union all
                select
                    r.run_id,
                    r.position_at
                from (
                    select
                        id as run_id,
                        cast(null as timestamptz) as position_at
                    from holdfast_runs
                    where
                        cast(:source as text) = 'runs'
                        and id < :before
                        and id > :after
                    order by id desc
                    limit :budget
                ) as r
                union all
                select
                    j.run_id,
                    j.position_at
                from (
                    select
                        id as run_id,
                        cast(null as timestamptz) as position_at
                    from holdfast_runs
                    where
                        -- Compare as a pair: with two conditions, PostgreSQL may read other jobs' runs too.
                        cast(:source as text) = 'job'
                        and (job, id) < (:job, :before)
                        and (job, id) > (:job, :after)
                    order by
                        job desc,
                        id desc
                    limit :budget
                ) as j
                union all
                select
                    p.run_id,
                    p.position_at
                from (
                    select
                        f.id as run_id,
                        cast(null as timestamptz) as position_at
                    from (
                        -- Read all children first: in the order of ids, PostgreSQL may read all other runs too.
                        select id
                        from holdfast_runs
                        where cast(:source as text) = 'parent' and parent_id = :parent_id
                        offset 0
                    ) as f
                    where
                        f.id < :before
                        and f.id > :after
                    order by f.id desc
                    limit :budget
                ) as p
            ) as every
            order by
                every.position_at desc,
                every.run_id desc
            limit :budget
        ) as c
        offset 0
    ) as m
) as p
where p.found = 1 or p.number = p.searched
order by p.number
limit :limit

-- name: find_matching (sqlserver)
-- Waits for locked rows of waits, ready, leases and outcomes: a bulk action on all matching runs must not miss one.
-- Skips locked rows of holdfast_runs, such as runs that are not committed yet.
select top (:limit)
    p.run_id,
    p.position_at,
    p.found,
    p.searched,
    p.matched
from (
    select
        m.run_id,
        m.position_at,
        m.found,
        count(*) over () as searched,
        sum(m.found) over () as matched,
        row_number() over (
            order by
                m.position_at desc,
                m.run_id desc
        ) as number
    from (
        select
            c.run_id,
            c.position_at,
            (
                select count(*)
                from holdfast_runs as q
                where
                    q.id = c.run_id
                    and q.id < :below
                    and q.created_at >= :since
                    and q.created_at < :until
                    and (cast(:job as nvarchar(1000)) is null or q.job = :job)
                    and (cast(:queue as nvarchar(1000)) is null or q.queue = :queue)
                    and (cast(:key as nvarchar(1000)) is null or q.run_key = :key)
                    and (cast(:tag as nvarchar(4000)) is null or q.tags like :tag escape '~')
                    and (cast(:parent_id as nvarchar(100)) is null or q.parent_id = :parent_id)
                    and (:parts = 1 or q.kind is null or q.kind not in ('stage', 'segment'))
                    and (cast(:tested as nvarchar(20)) is null or :tested = (select v.state from holdfast_run_view as v where v.id = q.id))
                    and (
                        cast(:error as nvarchar(1000)) is null
                        or charindex(lower(cast(:error as nvarchar(1000))), lower((select e.error from holdfast_outcomes as e where e.run_id = q.id))) > 0
                    )
                    and not exists (
                        select 1
                        from openjson(:args) with (path nvarchar(2000), text nvarchar(1000)) as a
                        where
                            -- Arguments that can't be decoded match no value, not even null.
                            case isjson(q.args)
                                when 1
                                then
                                    case
                                        when
                                            coalesce(
                                                json_value(case q.kind when 'pipeline' then json_query(q.args, '$.arguments') else q.args end, a.path),
                                                'null'
                                            ) collate latin1_general_100_bin2 = a.text collate latin1_general_100_bin2
                                            then 1
                                        else 0
                                    end
                                else 0
                            end = 0
                    )
            ) as found
        from (
            select top (:budget)
                every.run_id,
                every.position_at
            from (
                select
                    w.run_id,
                    w.position_at
                from (
                    select top (:budget)
                        run_id,
                        cast(null as datetime2(6)) as position_at
                    from holdfast_waits
                    where
                        cast(:source as varchar(20)) = 'queued'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                ) as w
                union all
                select
                    y.run_id,
                    y.position_at
                from (
                    select top (:budget)
                        run_id,
                        cast(null as datetime2(6)) as position_at
                    from holdfast_ready
                    where
                        cast(:source as varchar(20)) = 'queued'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                ) as y
                union all
                select
                    l.run_id,
                    l.position_at
                from (
                    select top (:budget)
                        run_id,
                        cast(null as datetime2(6)) as position_at
                    from holdfast_leases
                    where
                        cast(:source as varchar(20)) = 'running'
                        and run_id < :before
                        and run_id > :after
                    order by run_id desc
                ) as l
                union all
                select
                    o.run_id,
                    o.position_at
                from (
                    select top (:budget)
                        run_id,
                        finished_at as position_at
                    from holdfast_outcomes
                    where
                        cast(:source as varchar(20)) = 'ended'
                        and state = :state
                        and finished_at >= :since
                        and finished_at <= :before_at
                        and (finished_at < :before_at or run_id < :before)
                    order by
                        finished_at desc,
                        run_id desc
                ) as o
                union all
                select
                    r.run_id,
                    r.position_at
                from (
                    select top (:budget)
                        id as run_id,
                        cast(null as datetime2(6)) as position_at
                    from holdfast_runs with (readpast, readcommittedlock)
                    where
                        cast(:source as varchar(20)) = 'runs'
                        and id < :before
                        and id > :after
                    order by id desc
                ) as r
                union all
                select
                    j.run_id,
                    j.position_at
                from (
                    select top (:budget)
                        id as run_id,
                        cast(null as datetime2(6)) as position_at
                    from holdfast_runs with (readpast, readcommittedlock)
                    where
                        cast(:source as varchar(20)) = 'job'
                        and id < :before
                        and id > :after
                        and job = :job
                    order by id desc
                ) as j
                union all
                select
                    p.run_id,
                    p.position_at
                from (
                    select top (:budget)
                        id as run_id,
                        cast(null as datetime2(6)) as position_at
                    from holdfast_runs with (readpast, readcommittedlock)
                    where
                        cast(:source as varchar(20)) = 'parent'
                        and id < :before
                        and id > :after
                        and parent_id = :parent_id
                    order by id desc
                ) as p
            ) as every
            order by
                every.position_at desc,
                every.run_id desc
        ) as c
    ) as m
) as p
where p.found = 1 or p.number = p.searched
order by p.number
