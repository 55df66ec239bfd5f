-- The bounded ones of these queues, held still: one submission at a time counts their seats.
update holdfast_queues
set version = version + 1
where max_queued is not null and name in (select value from json_each(:queues))
returning name, max_queued
