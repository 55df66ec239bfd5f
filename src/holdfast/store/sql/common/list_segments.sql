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
    select
        id,
        segment
    from holdfast_runs
    where
        parent_id = :parent_id
        and stage = :stage
        and segment <> ''
        and (
            length(segment) > length(cast(:after as text))
            or (length(segment) = length(cast(:after as text)) and segment > :after)
        )
    order by
        length(segment),
        segment
    limit :limit
) as page
inner join holdfast_run as v on v.id = page.id
order by
    length(page.segment),
    page.segment
