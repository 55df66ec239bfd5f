-- This queue may be claimed again.
update holdfast_queues
set
    paused_at = null,
    note = null
where name = :name
