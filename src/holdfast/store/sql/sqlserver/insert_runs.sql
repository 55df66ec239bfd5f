-- Submit; a run that is there already (by id, by idempotency key, or as that child) is left out.
-- Where a queue is bounded and its seats were not counted, the database refuses.
insert into holdfast_runs (
    id,
    job,
    queue,
    priority,
    [key],
    args,
    policy,
    tags,
    idempotency_key,
    again_of,
    kind,
    parent_id,
    stage,
    segment,
    needed,
    dependencies,
    key_limit,
    key_submitted,
    audit,
    trace,
    created_at
)
output inserted.id
select
    r.id,
    r.job,
    r.queue,
    r.priority,
    r.[key],
    r.args,
    r.policy,
    r.tags,
    r.idempotency_key,
    r.again_of,
    r.kind,
    r.parent_id,
    r.stage,
    r.segment,
    r.needed,
    r.dependencies,
    r.key_limit,
    concat(r.id, '|', r.key_limit, '|', r.[key]),
    r.audit,
    r.trace,
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
        s.[key],
        s.args,
        s.policy,
        s.tags,
        s.idempotency_key collate latin1_general_100_bin2 as idempotency_key,
        s.again_of,
        s.kind,
        s.parent_id collate latin1_general_100_bin2 as parent_id,
        s.stage collate latin1_general_100_bin2 as stage,
        s.segment collate latin1_general_100_bin2 as segment,
        s.needed,
        s.dependencies,
        s.key_limit,
        s.audit,
        s.trace,
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
        [key] nvarchar(1000),
        args nvarchar(max),
        policy nvarchar(max),
        tags nvarchar(max),
        idempotency_key nvarchar(1000),
        again_of varchar(100),
        kind nvarchar(1000),
        parent_id varchar(100),
        stage nvarchar(1000),
        segment nvarchar(1000),
        needed nvarchar(max),
        dependencies nvarchar(max),
        key_limit int,
        audit int,
        trace nvarchar(1000),
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
