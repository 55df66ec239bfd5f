-- What is another one whenever a run was submitted, began or ended, something was recorded, or a worker spoke.
select
    (select max(id) from holdfast_runs) as run_id,
    (select max(id) from holdfast_events) as event_id,
    (select count(*) from holdfast_leases) as leases,
    (select max(started_at) from holdfast_leases) as started_at,
    (select max(finished_at) from holdfast_outcomes where state = 'succeeded') as succeeded_at,
    (select max(finished_at) from holdfast_outcomes where state = 'failed') as failed_at,
    (select max(finished_at) from holdfast_outcomes where state = 'cancelled') as cancelled_at,
    (select max(finished_at) from holdfast_outcomes where state = 'timed_out') as timed_out_at,
    (select count(*) from holdfast_workers) as workers,
    (select max(seen_at) from holdfast_workers) as seen_at
