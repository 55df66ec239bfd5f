-- The runs of a pipeline that failed by themselves, or wait to be tried again, as many as are asked for.
select
    v.id,
    v.stage,
    v.segment,
    v.place,
    v.state,
    v.due_at,
    v.because,
    v.failure_type,
    v.error
from holdfast_run as v
where
    v.parent_id = :parent_id
    and (
        (v.state in ('failed', 'timed_out') and v.failure_type <> :passed_on)
        or (v.due_at is not null and v.tries > 0)
    )
order by v.id
limit :limit
