-- How many runs are in each state, counted no further than that.
select
    (select count(*) from (select top (:most) run_id from holdfast_waits with (readpast, readcommittedlock)) as w)
    + (select count(*) from (select top (:most) run_id from holdfast_ready with (readpast, readcommittedlock)) as r) as queued,
    (select count(*) from (select top (:most) run_id from holdfast_leases with (readpast, readcommittedlock)) as l) as running,
    (select count(*) from (select top (:most) run_id from holdfast_outcomes with (readpast, readcommittedlock) where state = 'succeeded' order by finished_at desc) as o) as succeeded,
    (select count(*) from (select top (:most) run_id from holdfast_outcomes with (readpast, readcommittedlock) where state = 'failed' order by finished_at desc) as o) as failed,
    (select count(*) from (select top (:most) run_id from holdfast_outcomes with (readpast, readcommittedlock) where state = 'cancelled' order by finished_at desc) as o) as cancelled,
    (select count(*) from (select top (:most) run_id from holdfast_outcomes with (readpast, readcommittedlock) where state = 'timed_out' order by finished_at desc) as o) as timed_out
