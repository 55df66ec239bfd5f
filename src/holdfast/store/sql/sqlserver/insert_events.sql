-- Record what happened.
insert into holdfast_events (
    run_id,
    kind,
    attempt,
    data,
    happened_at
)
select
    r.run_id,
    r.kind,
    r.attempt,
    r.data,
    r.happened_at
from openjson(:rows) with (
    run_id varchar(100),
    kind nvarchar(1000),
    attempt int,
    data nvarchar(max),
    happened_at datetime2(6)
) as r
