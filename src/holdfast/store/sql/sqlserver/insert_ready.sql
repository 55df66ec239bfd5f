-- Let runs be claimed.
insert into holdfast_ready (
    run_id,
    job,
    queue,
    rank,
    [key],
    attempt,
    tries,
    takeovers,
    key_limit,
    number,
    reserved
)
select
    r.run_id,
    r.job,
    r.queue,
    r.rank,
    r.[key],
    r.attempt,
    r.tries,
    r.takeovers,
    r.key_limit,
    r.number,
    r.reserved
from openjson(:rows) with (
    run_id varchar(100),
    job nvarchar(1000),
    queue nvarchar(1000),
    rank int,
    [key] nvarchar(1000),
    attempt int,
    tries int,
    takeovers int,
    key_limit int,
    number int,
    reserved bigint
) as r
