-- How many runs are in each state, counted no further than that.
select
    (select count(*) from (select run_id from holdfast_waits limit :most) as w)
    + (select count(*) from (select run_id from holdfast_ready limit :most) as r) as queued,
    (select count(*) from (select run_id from holdfast_leases limit :most) as l) as running,
    (select count(*) from (select run_id from holdfast_outcomes where state = 'succeeded' order by finished_at desc limit :most) as o) as succeeded,
    (select count(*) from (select run_id from holdfast_outcomes where state = 'failed' order by finished_at desc limit :most) as o) as failed,
    (select count(*) from (select run_id from holdfast_outcomes where state = 'cancelled' order by finished_at desc limit :most) as o) as cancelled,
    (select count(*) from (select run_id from holdfast_outcomes where state = 'timed_out' order by finished_at desc limit :most) as o) as timed_out
