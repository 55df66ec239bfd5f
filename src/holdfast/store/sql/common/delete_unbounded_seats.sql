-- Seats of queues that are bounded no more.
delete from holdfast_seats
where
    not exists (select 1 from holdfast_queues as q where q.name = '*' and q.max_queued is not null)
    and queue not in (select q.name from holdfast_queues as q where q.max_queued is not null)
