-- A page of a stage's segments, shorter names first: those that are numbered come in the order of their numbers.
select
    v.id,
    v.segment,
    v.place,
    v.state,
    v.attempt,
    v.tries,
    v.due_at,
    case when v.attempt = 0 then v.error end as reason
from (
    select top (:limit)
        id,
        segment
    from holdfast_runs with (readpast, readcommittedlock)
    where
        parent_id = :parent_id
        and stage = :stage
        and segment <> ''
        and (
            datalength(segment) > datalength(cast(:after as nvarchar(1000)))
            or (datalength(segment) = datalength(cast(:after as nvarchar(1000))) and segment > :after)
        )
    order by
        datalength(segment),
        segment
) as page
inner join holdfast_run as v on v.id = page.id
order by
    datalength(page.segment),
    page.segment
