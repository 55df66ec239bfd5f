-- Where a run stands; no one can move it, or write of it, before this transaction ends.
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
