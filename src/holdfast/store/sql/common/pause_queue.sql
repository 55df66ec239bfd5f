-- Nothing of this queue may be claimed.
update holdfast_queues
set
    paused_at = :now,
    note = :note
where name = :name
