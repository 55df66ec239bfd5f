-- What a worker serves has changed: jobs were declared since it started.
update holdfast_workers
set
    queues = :queues,
    jobs = :jobs
where id = :id
