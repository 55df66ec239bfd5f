-- The newest samples since then.
select top (:limit)
    minute_at,
    waiting,
    running,
    oldest
from holdfast_samples
where minute_at >= :since
order by minute_at desc
