-- Where the runs stand that belong to a run, those that repeat it, and those that are named.
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
        select top (:limit) r.id
        from holdfast_runs as r
        where r.parent_id = :run_id
        order by
            r.stage,
            r.segment
    ) as c
    union all
    select
        'repeat' as relation,
        a.id
    from (
        select top (:limit) r.id
        from holdfast_runs as r
        where r.again_of = :run_id
        order by r.id desc
    ) as a
    union all
    select
        'named' as relation,
        j.id collate latin1_general_100_bin2 as id
    from openjson(:ids) with (id varchar(100) '$') as j
) as k
inner join holdfast_run as v on v.id = k.id
